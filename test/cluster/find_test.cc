// Which file system a command means.
#include <catch2/catch.hpp>

#include "folders.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

// Surroundings in which nothing is found: no $PIF, an empty home, and a current folder without a description.
class Nowhere {
 public:
  Nowhere()
      : pif_("PIF", std::nullopt),
        configuration_("XDG_CONFIG_HOME", std::nullopt),
        home_("HOME", temporary_ / "home"),
        current_(temporary_.path()) {}
  std::string operator/(const std::string& name) const { return temporary_ / name; }
  // A folder with a description; what is in it does not matter here.
  std::string file_system(const std::string& name) const {
    put(*this / name + "/pif.toml", "");
    return *this / name;
  }

 private:
  TemporaryFolder temporary_;
  Environment pif_, configuration_, home_;
  CurrentFolder current_;
};

TEST_CASE("--pif comes before $PIF, that before the current folder, and that before the user's default") {
  const Nowhere nowhere;
  const std::string a = nowhere.file_system("a"), b = nowhere.file_system("b"), c = nowhere.file_system("c");
  put(nowhere / "home/.config/pif/default", nowhere.file_system("d") + "\n");
  CHECK(find_cluster("") == nowhere / "d");
  const CurrentFolder in_c(c);
  CHECK(find_cluster("") == c);
  const Environment pif("PIF", b);
  CHECK(find_cluster("") == b);
  CHECK(find_cluster(a) == a);
}

TEST_CASE("the description is looked for in every folder above") {
  const Nowhere nowhere;
  const std::string a = nowhere.file_system("a");
  put(a + "/deep/er/x", "");
  const CurrentFolder below(a + "/deep/er");
  CHECK(find_cluster("") == a);
}

TEST_CASE("a description that belongs to neither the user nor root is passed over") {
  if (::geteuid() != 0) return;  // only root can make one
  constexpr uid_t kStranger = 12345;
  const Nowhere nowhere;
  const std::string a = nowhere.file_system("a"), stranger = nowhere.file_system("a/b");
  REQUIRE(::chown((stranger + "/pif.toml").c_str(), kStranger, kStranger) == 0);
  const CurrentFolder below(stranger);
  CHECK(find_cluster("") == a);
  CHECK(find_cluster(stranger) == stranger);  // who names it means it
  REQUIRE(::unlink((stranger + "/pif.toml").c_str()) == 0);
  REQUIRE(::symlink((a + "/pif.toml").c_str(), (stranger + "/pif.toml").c_str()) == 0);
  CHECK(find_cluster("") == stranger);
  REQUIRE(::lchown((stranger + "/pif.toml").c_str(), kStranger, kStranger) == 0);
  CHECK(find_cluster("") == a);
}

TEST_CASE("a folder may be named relatively and with slashes at its end") {
  const Nowhere nowhere;
  const std::string a = nowhere.file_system("a");
  CHECK(find_cluster("a") == a);
  CHECK(find_cluster("./a//") == a);
  CHECK(find_cluster(a + "/") == a);
}

TEST_CASE("the user's default is in XDG_CONFIG_HOME if that is set, else in ~/.config") {
  const Nowhere nowhere;
  put(nowhere / "home/.config/pif/default", nowhere.file_system("a") + "\n");
  CHECK(find_cluster("") == nowhere / "a");
  const Environment configuration("XDG_CONFIG_HOME", nowhere / "xdg");
  put(nowhere / "xdg/pif/default", nowhere.file_system("b"));
  CHECK(find_cluster("") == nowhere / "b");
}

TEST_CASE("a named folder without a file system is an error, and no other is taken instead") {
  const Nowhere nowhere;
  const std::string a = nowhere.file_system("a");
  const CurrentFolder in_a(a);
  const auto named = find_cluster("/does/not/exist/");
  CHECK(named.error().code == Code::kNotFound);
  CHECK(named.error().text ==
        "--pif is /does/not/exist, where there is no pif.toml: name the folder that `pif up` made");
  const Environment pif("PIF", nowhere / "gone");
  CHECK(find_cluster("").error().text.substr(0, 8) == "$PIF is ");
}

TEST_CASE("a default whose file system is gone is named with where it is kept") {
  const Nowhere nowhere;
  put(nowhere / "home/.config/pif/default", nowhere / "gone");
  CHECK(find_cluster("").error().text.substr(0, 12) == "your default");
  CHECK(find_cluster("").error().text.find(nowhere / "home/.config/pif/default") != std::string::npos);
}

TEST_CASE("where nothing is found the error says where it was looked for") {
  const Nowhere nowhere;
  const auto found = find_cluster("");
  CHECK(found.error().code == Code::kNotFound);
  for (const std::string& part : {std::string("--pif"), std::string("$PIF"), std::string("current folder"),
                                  nowhere / "home/.config/pif/default", std::string("pif up")})
    CHECK(found.error().text.find(part) != std::string::npos);
}

TEST_CASE("the first file system becomes the user's default, and stays it until it is gone") {
  const Nowhere nowhere;
  const std::string a = nowhere.file_system("a"), b = nowhere.file_system("b");
  REQUIRE(offer_default(a + "/"));
  CHECK(contents(nowhere / "home/.config/pif/default") == a + "\n");
  REQUIRE(offer_default(b));
  CHECK(find_cluster("") == a);
  std::filesystem::remove_all(a);
  REQUIRE(offer_default("b"));
  CHECK(find_cluster("") == b);
}

TEST_CASE("a default that cannot be written is an error that names it") {
  const Nowhere nowhere;
  put(nowhere / "home", "a file");
  const Status offered = offer_default(nowhere.file_system("a"));
  REQUIRE_FALSE(offered);
  CHECK(offered.error().text.find(nowhere / "home") != std::string::npos);
}

}  // namespace
}  // namespace pif::cluster
