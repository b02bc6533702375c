// Roots outside of the folder, which a copy of the folder names, too.
#include <catch2/catch.hpp>

#include "folders.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

namespace fs = std::filesystem;

// A file system whose second root is elsewhere, and its copy.
struct TwoOfOne {
  TwoOfOne() {
    Cluster cluster = create_cluster(temporary / "original", 2, 0, TcpMode::kNone).value();
    cluster.lfss[1].root = root;
    REQUIRE(save_cluster(cluster));
    fs::create_directory(root);
    fs::create_directory(temporary / "original/lfs0");
    fs::copy(temporary / "original", temporary / "copy", fs::copy_options::recursive);
  }
  Cluster load(const std::string& name) const { return load_cluster(temporary / name).value(); }

  const TemporaryFolder temporary;
  const std::string root = temporary / "disk9";
};

TEST_CASE("a root elsewhere belongs to the one of two that used it last") {
  const TwoOfOne two;
  const Cluster original = two.load("original"), copy = two.load("copy");
  CHECK(check_unshared(original, two.root));
  CHECK(check_unshared(copy, two.root));
  CHECK_FALSE(is_own_folder(original, two.root));
  REQUIRE(note_user(original, two.root));
  CHECK(last_user_of(two.root) == original.folder);
  CHECK(is_own_folder(original, two.root));
  CHECK_FALSE(is_own_folder(copy, two.root));
  CHECK(check_unshared(original, two.root));
  CHECK(other_user_of(copy, two.root) == original.folder);
  const Status refused = check_unshared(copy, two.root);
  CHECK(refused.error().code == Code::kExists);
  for (const std::string& named : {two.root, original.folder, copy.folder})
    CHECK_THAT(refused.error().text, Catch::Contains(named));
  REQUIRE(note_user(copy, two.root));
  CHECK(other_user_of(original, two.root) == copy.folder);
}

TEST_CASE("a root in the folder is the folder's, whatever it says of others") {
  const TwoOfOne two;
  const Cluster original = two.load("original"), copy = two.load("copy");
  REQUIRE(note_user(original, original.lfss[0].root));
  CHECK_FALSE(fs::exists(original.lfss[0].root + "/used-by"));
  CHECK(is_own_folder(copy, copy.lfss[0].root));
}

TEST_CASE("a root that a link in the folder leads to is elsewhere") {
  const TwoOfOne two;
  const Cluster original = two.load("original"), copy = two.load("copy");
  for (const Cluster* one : {&original, &copy}) {
    fs::remove_all(one->folder + "/linked");
    fs::create_directory_symlink(two.root, one->folder + "/linked");
  }
  REQUIRE(note_user(original, original.folder + "/linked"));
  CHECK(other_user_of(copy, copy.folder + "/linked") == original.folder);
}

TEST_CASE("a root is free if who used it last is gone, or has another one now") {
  const TwoOfOne two;
  Cluster original = two.load("original");
  const Cluster copy = two.load("copy");
  REQUIRE(note_user(original, two.root));
  SECTION("it was moved") { fs::rename(two.temporary / "original", two.temporary / "elsewhere"); }
  SECTION("another root was put into its pif.toml") {
    original.lfss[1].root = two.temporary / "disk10";
    REQUIRE(save_cluster(original));
  }
  CHECK(check_unshared(copy, two.root));
  CHECK_FALSE(is_own_folder(copy, two.root));
}

TEST_CASE("a root is not free if who used it last cannot be read") {
  const TwoOfOne two;
  const Cluster original = two.load("original"), copy = two.load("copy");
  REQUIRE(note_user(original, two.root));
  fs::resize_file(original.folder + "/pif.toml", 10);
  CHECK(other_user_of(copy, two.root) == original.folder);
}

}  // namespace
}  // namespace pif::cluster
