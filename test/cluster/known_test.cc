// The file systems that a user knows.
#include <catch2/catch.hpp>

#include "folders.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

using Folders = std::vector<std::string>;

// A user with an empty home.
class Home {
 public:
  Home()
      : state_("XDG_STATE_HOME", std::nullopt),
        configuration_("XDG_CONFIG_HOME", std::nullopt),
        home_("HOME", temporary_ / "home") {}
  std::string operator/(const std::string& name) const { return temporary_ / name; }

 private:
  TemporaryFolder temporary_;
  Environment state_, configuration_, home_;
};

Folders known() {
  const auto folders = known_clusters();
  REQUIRE(folders);
  return *folders;
}

}  // namespace

TEST_CASE("file systems are remembered once, the oldest first, until they are forgotten") {
  const Home home;
  CHECK(known().empty());
  for (const char* folder : {"/b", "/a", "/b"}) REQUIRE(remember_cluster(folder));
  CHECK(known() == Folders{"/b", "/a"});
  CHECK(contents(home / "home/.local/state/pif/known") == "/b\n/a\n");
  REQUIRE(forget_cluster("/b"));
  REQUIRE(forget_cluster("/none"));
  CHECK(known() == Folders{"/a"});
}

TEST_CASE("XDG_STATE_HOME says where they are remembered") {
  const Home home;
  const Environment state("XDG_STATE_HOME", home / "state");
  REQUIRE(remember_cluster("/a"));
  CHECK(contents(home / "state/pif/known") == "/a\n");
}

TEST_CASE("the default is known, and is no default any more when it is forgotten") {
  const Home home;
  put(home / "a/pif.toml", "");
  REQUIRE(offer_default(home / "a"));
  CHECK(known() == Folders{home / "a"});
  CHECK(default_cluster() == home / "a");
  REQUIRE(forget_cluster("/b"));
  CHECK(default_cluster() == home / "a");
  REQUIRE(forget_cluster(home / "a"));
  CHECK(default_cluster().empty());
  CHECK(known().empty());
}

TEST_CASE("a folder with a line break in its name cannot be remembered") {
  const Home home;
  CHECK(remember_cluster("/a\nb").error().code == Code::kInvalid);
  CHECK(known().empty());
}

}  // namespace pif::cluster
