// pif.toml: what is read back, and how each mistake in it is named.
#include <string>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "folders.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

// As released; this text must stay readable.
constexpr const char* kVersion1 =
    "# a comment\n"
    "format = 1\n"
    "id = \"00c0ffee00c0ffee\"\n"
    "bevy = 2\n"
    "tcp = \"curve\"\n"
    "[[lfs]]\n"
    "id = 7\n"
    "name = \"lfs0\"\n"
    "root = \"lfs0\"\n"
    "[[lfs]]\n"
    "id = 2\n"
    "name = \"other-1\"\n"
    "root = \"/mnt/disk 1/ö\"\n"
    "[[lfs]]\n"
    "id = 3\n"
    "name = \"c\"\n"
    "root = \"c\"\n"
    "[[lfs]]\n"
    "id = 4\n"
    "name = \"d\"\n"
    "root = \"d\"\n";

class Folder : public TemporaryFolder {
 public:
  Result<Cluster> load(const std::string& text) const {
    put(*this / "pif.toml", text);
    return load_cluster(path());
  }
  // The error of a text, without the path that every error starts with.
  std::string refusal(const std::string& text, Code code = Code::kInvalid) const {
    const auto loaded = load(text);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == code);
    const std::string start = *this / "pif.toml";
    REQUIRE(loaded.error().text.substr(0, start.size()) == start);
    return loaded.error().text.substr(start.size());
  }
};

TEST_CASE("uuids and stage are there in format 2, once each, and in format 1 not at all") {
  const Folder folder;
  const auto made = create_cluster(folder / "fs", 2, 0, TcpMode::kNone);
  REQUIRE(made);
  CHECK(made->stage == Stage::kNew);
  CHECK(check_ready(*made).error().code == Code::kInvalid);
  const std::string text = contents(folder / "fs/pif.toml");
  CHECK(folder.load(text));
  CHECK_THAT(folder.refusal(replaced(text, "stage = \"new\"", "stage = \"old\"")), Catch::Contains("stage must be"));
  CHECK_THAT(folder.refusal(replaced(text, made->directory, "12")),
             Catch::Contains("directory must be 32 hexadecimal digits"));
  CHECK_THAT(folder.refusal(replaced(text, made->lfss[1].uuid, made->lfss[0].uuid)),
             Catch::Contains("given to another LFS"));
  CHECK_THAT(folder.refusal(replaced(text, "uuid = ", "uid = ")), Catch::Contains("not a key"));
  CHECK_THAT(folder.refusal(replaced(kVersion1, "bevy", "stage = \"ready\"\nbevy")), Catch::Contains("not a key"));
}

TEST_CASE("a description of format 1 is read") {
  const Folder folder;
  const auto cluster = folder.load(kVersion1);
  REQUIRE(cluster);
  CHECK(cluster->id == "00c0ffee00c0ffee");
  CHECK(cluster->bevy == 2);
  CHECK(cluster->tcp == TcpMode::kCurve);
  REQUIRE(cluster->lfss.size() == 4);
  CHECK(cluster->lfss[0].id == 7);
  CHECK(cluster->lfss[0].root == folder / "lfs0");
  CHECK(cluster->stage == Stage::kBefore);
  CHECK(cluster->lfss[1].name == "other-1");
  CHECK(cluster->lfss[1].root == "/mnt/disk 1/ö");
}

TEST_CASE("a description that is saved is read back the same, whatever is in its paths") {
  const Folder folder;
  Cluster cluster = folder.load(kVersion1).value();
  cluster.tcp = TcpMode::kNone;
  cluster.lfss[1].root = "/mnt/a \"quoted\\ path\"\n\x01\x7f#";
  cluster.lfss.push_back({9, "lfs9", folder / "deep/er", ""});
  REQUIRE(name_roots(cluster));
  REQUIRE(save_cluster(cluster));
  const auto back = load_cluster(folder.path());
  REQUIRE(back);
  CHECK(back->tcp == TcpMode::kNone);
  CHECK(back->bevy == 2);
  REQUIRE(back->lfss.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(back->lfss[i].id == cluster.lfss[i].id);
    CHECK(back->lfss[i].name == cluster.lfss[i].name);
    CHECK(back->lfss[i].root == cluster.lfss[i].root);
    CHECK(back->lfss[i].uuid == cluster.lfss[i].uuid);
  }
  CHECK(back->stage == Stage::kAdopting);
  CHECK(back->directory == cluster.directory);
}

TEST_CASE("a folder that is moved takes its LFSs along") {
  const TemporaryFolder temporary;
  REQUIRE(create_cluster(temporary / "before", 2, 0, TcpMode::kNone));
  std::filesystem::rename(temporary / "before", temporary / "after");
  CHECK(load_cluster(temporary / "after").value().lfss[1].root == temporary / "after/lfs1");
}

TEST_CASE("what could not be read again is not saved") {
  const Folder folder;
  Cluster cluster = folder.load(kVersion1).value();
  Cluster twice = cluster;
  twice.lfss[1].id = 7;
  CHECK(save_cluster(twice).error().code == Code::kInvalid);
  Cluster empty = cluster;
  empty.lfss.clear();
  CHECK(save_cluster(empty).error().code == Code::kInvalid);
  Cluster bytes = cluster;
  bytes.lfss[0].root = "/not utf-8 \xff";
  CHECK(save_cluster(bytes).error().code == Code::kInvalid);
  CHECK(contents(folder / "pif.toml") == kVersion1);
}

TEST_CASE("saving replaces the description in one step and leaves nothing beside it") {
  const Folder folder;
  Cluster cluster = folder.load(kVersion1).value();
  cluster.bevy = 0;
  REQUIRE(name_roots(cluster));
  REQUIRE(save_cluster(cluster));
  CHECK(entries(folder.path()) == 1);
  CHECK(load_cluster(folder.path()).value().bevy == 0);
}

TEST_CASE("a folder without a description is not a file system") {
  const TemporaryFolder temporary;
  const auto loaded = load_cluster(temporary.path());
  CHECK(loaded.error().code == Code::kNotFound);
  CHECK(loaded.error().text == temporary.path() + " has no pif.toml: it is not the folder of a file system");
  CHECK(load_cluster(temporary / "none").error().code == Code::kNotFound);
}

TEST_CASE("a newer format is refused as such, whatever else is in it") {
  const Folder folder;
  CHECK(folder.refusal(replaced(kVersion1, "format = 1", "format = 5\nsomething = \"new\""), Code::kVersion) ==
        " has format 5, and this program knows formats up to 4: use a newer one");
}

TEST_CASE("settings make the format 4, each of them, and it is the old one again without any") {
  const Folder folder;
  auto made = create_cluster(folder / "fs", 2, 0, TcpMode::kNone);
  REQUIRE(made);
  const std::string before = contents(folder / "fs/pif.toml");
  CHECK(made->grants);
  CHECK(made->worker_memory_bounded);
  for (const Setting& setting : kSettings) {
    (*made).*setting.is_normal = false;
    REQUIRE(save_cluster(*made));
    const std::string text = contents(folder / "fs/pif.toml");
    CHECK_THAT(text, Catch::Contains("format = 4\n"));
    CHECK_THAT(text, Catch::Contains(fmt::format("\n{} = \"{}\"", setting.key, setting.other)));
    const auto read = load_cluster(folder / "fs");
    REQUIRE(read);
    for (const Setting& other : kSettings) CHECK((*read).*other.is_normal == (other.key != setting.key));
    CHECK_THAT(folder.refusal(replaced(text, "format = 4", "format = 2")), Catch::Contains("not a key"));
    CHECK_THAT(folder.refusal(replaced(text, fmt::format("{} = \"{}\"", setting.key, setting.other),
                                       fmt::format("{} = \"x\"", setting.key))),
               Catch::Contains(fmt::format("{} must be \"{}\" or", setting.key, setting.normal)));
    (*made).*setting.is_normal = true;
    REQUIRE(save_cluster(*made));
    CHECK(contents(folder / "fs/pif.toml") == before);
  }
}

TEST_CASE("a mistake is named with its line and key") {
  const Folder folder;
  const auto with = [&](const std::string& what, const std::string& by) {
    return folder.refusal(replaced(kVersion1, what, by));
  };
  CHECK(with("format = 1\n", "") == ", line 1: format is missing");
  CHECK(with("format = 1", "format = \"1\"") ==
        ", line 2: format must be a whole number from 1 to 9223372036854775807");
  CHECK(with("id = \"00c0ffee00c0ffee\"", "id = \"00C0FFEE00c0ffee\"") ==
        ", line 3: id must be 16 hexadecimal digits, 0-9 and a-f");
  CHECK(with("bevy = 2", "bevy = -1") == ", line 4: bevy must be a whole number from 0 to 4096");
  CHECK(with("bevy = 2", "bevy = 3") ==
        ", line 4: bevy does not fit: bevies of 3 need at least 6 LFSs (one bevy and its companion), and there are 4");
  CHECK(with("bevy = 2", "bevvy = 2") == ", line 4: bevvy is not a key of this format");
  CHECK(with("\"curve\"", "\"plain\"") == ", line 5: tcp must be \"none\", \"curve\" or \"insecure-loopback\"");
  CHECK(with("id = 7", "id = 0") == ", line 7: id must be a whole number from 1 to 4294967295");
  CHECK(with("id = 2", "id = 7") == ", line 11: id 7 is given to another LFS too");
  CHECK(with("\"other-1\"", "\"lfs0\"") == ", line 12: name lfs0 is given to another LFS too");
  CHECK(with("\"/mnt/disk 1/ö\"", "\"lfs0\"") ==
        ", line 13: root " + (folder / "lfs0") + " is given to another LFS too");
  CHECK(with("root = \"c\"", "root = \"\"") == ", line 17: root must be a string that is not empty");
  CHECK(with("root = \"c\"", "root = \"a\\u0000b\"") == ", line 17: root must be a string that is not empty");
  CHECK(with("root = \"c\"", "path = \"c\"") == ", line 17: path is not a key of this format");
}

TEST_CASE("a daemon's name cannot leave its folder or overflow a socket's path") {
  const Folder folder;
  for (const std::string name : {"../x", "a/b", "A", "server", "", "sixteen-letters-"})
    CHECK(folder.refusal(replaced(kVersion1, "\"other-1\"", "\"" + name + "\"")).substr(0, 15) == ", line 12: name");
}

TEST_CASE("text that is not TOML is named with its line") {
  const Folder folder;
  CHECK(folder.refusal("format = 1\nid = = 3\n").substr(0, 9) == ", line 2:");
  CHECK(folder.refusal("format = 1\nid = \"\xff\xfe\"\n").substr(0, 9) == ", line 2:");
  CHECK(folder.refusal("").find("format is missing") != std::string::npos);
  CHECK(folder.refusal("format = 1\nid = \"00c0ffee00c0ffee\"\nbevy = 0\ntcp = \"none\"\n").find("lfs is missing") !=
        std::string::npos);
}

// toml++ 3.3 was led into undefined behaviour by them (found by fuzzing).
TEST_CASE("what is not TOML is refused, and does not lead the parser astray") {
  const Folder folder;
  for (const auto* where : {"bevy", "2\n", "= 7", "[[lfs]]"})
    for (const auto* what : {"\xef\xba\xba", "\xc3\xb6", "\xe2\xba\x80", "\xff",
                             "1979-05-27T\x10"
                             "7:32:00",
                             "0'x\xef\xbb\xbf'", "[,["})
      CHECK(folder.refusal(replaced(kVersion1, where, what + std::string(where))).substr(0, 7) == ", line ");
  const std::string comment =
      "\xef\xbb\xbf# \xef\xba\xba: \"\n" + replaced(kVersion1, "bevy = 2", "bevy = 2 # '\xc3\xb6");
  CHECK(folder.load(replaced(comment, "\"c\"\nroot = \"c\"", "\"\"\"c\"\"\"\nroot = ':\xef\xba\xba\"'")).has_value());
}

TEST_CASE("a description that is absurdly long is not read") {
  const Folder folder;
  CHECK(folder.load(std::string(5u << 20, '#')).error().code == Code::kTooLarge);
}

// Cut off anywhere, a description is either refused or, at the end of a table, a smaller one: never a crash.
TEST_CASE("a description that is cut off anywhere is refused or has fewer LFSs") {
  const Folder folder;
  const std::string whole = replaced(kVersion1, "bevy = 2", "bevy = 0");
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    const auto loaded = folder.load(whole.substr(0, length));
    if (loaded) REQUIRE(loaded->lfss.size() <= 4);
    if (!loaded) REQUIRE(loaded.error().code == Code::kInvalid);
  }
}

}  // namespace
}  // namespace pif::cluster
