// Removing what is known of a folder, and nothing else.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <catch2/catch.hpp>

#include "../../tools/pif/names/removal.h"

using namespace pif;
using namespace pif::cli;

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path().string() + "/pif-removal-test.XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void put(const std::string& name) const {
    fs::create_directories(fs::path(*this / name).parent_path());
    std::ofstream(*this / name) << "x";
  }

 private:
  std::string path_;
};

const KnownFolder kKnown = {{"*.dat", "lock"}, {{"sub[0-9]", {{"a"}, {}, {}}}}, "id"};

Removal removed(const std::string& folder) {
  Removal removal;
  REQUIRE(remove_known(folder, kKnown, removal));
  return removal;
}

}  // namespace

TEST_CASE("a folder with nothing but what is known is gone") {
  const Folder folder;
  for (const char* name : {"r/1.dat", "r/2.dat", "r/lock", "r/id", "r/sub1/a"}) folder.put(name);
  const Removal removal = removed(folder / "r");
  CHECK(removal.files == 5);
  CHECK(removal.left.empty());
  CHECK(!fs::exists(folder / "r"));
  CHECK(removed(folder / "r").files == 0);  // it is done already
}

TEST_CASE("what nobody knows stays, and is named") {
  const Folder folder;
  for (const char* name : {"r/1.dat", "r/id", "r/notes.txt", "r/sub1/a", "r/sub1/b", "r/other/a", "r/sub1/a.d/a"})
    folder.put(name);
  const Removal removal = removed(folder / "r");
  CHECK(removal.files == 3);
  const std::set<std::string> left(removal.left.begin(), removal.left.end());
  CHECK(left ==
        std::set<std::string>{folder / "r/notes.txt", folder / "r/sub1/b", folder / "r/other", folder / "r/sub1/a.d"});
  CHECK(!fs::exists(folder / "r/id"));
  for (const char* name : {"r/notes.txt", "r/sub1/b", "r/other/a", "r/sub1/a.d/a"}) CHECK(fs::exists(folder / name));
}

TEST_CASE("no link is followed or removed") {
  const Folder folder;
  for (const char* name : {"outside/a", "outside/1.dat", "r/id"}) folder.put(name);
  fs::create_directory_symlink(folder / "outside", folder / "r/sub1");
  fs::create_symlink(folder / "outside/1.dat", folder / "r/2.dat");
  const Removal removal = removed(folder / "r");
  CHECK(removal.left.size() == 2);
  CHECK(fs::exists(folder / "outside/a"));
  CHECK(fs::exists(folder / "outside/1.dat"));
  CHECK(fs::is_symlink(folder / "r/2.dat"));
  fs::create_directory_symlink(folder / "outside", folder / "link");
  CHECK(removed(folder / "link").left == std::vector<std::string>{folder / "link"});
  CHECK(fs::exists(folder / "outside/1.dat"));
}
