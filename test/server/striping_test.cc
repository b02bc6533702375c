// What folders say of files that are made in them.
#include "pif/base/inheriting.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

using Numbers = std::vector<std::uint32_t>;

struct Said {
  std::uint32_t width = 0;
  Numbers nodes = {};
  std::optional<std::uint32_t> bevy = {};
  std::uint32_t record_length = 0;  // 0: no format
};

proto::Striping striping(const Said& said) {
  proto::Striping out;
  out.set_width(said.width);
  out.mutable_nodes()->Assign(said.nodes.begin(), said.nodes.end());
  if (said.bevy) out.set_bevy(*said.bevy);
  if (said.record_length == 0) return out;
  out.mutable_format()->set_kind(1);
  out.mutable_format()->set_record_length(said.record_length);
  return out;
}

Envelope folder_request(const std::string& path, const Said& said, bool parents = false) {
  Envelope request = Client::folder_request(path, parents);
  *request.mutable_make_folder()->mutable_striping() = striping(said);
  return request;
}
Envelope change_request(const std::string& path, const Said& said) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  *request.mutable_set_attributes()->mutable_striping() = striping(said);
  return request;
}

// Of the folder, or `none`.
std::string shown(Client& client, const std::string& path) {
  const auto info = client.stat(path);
  REQUIRE(info);
  return info->has_striping() ? info->striping().SerializeAsString() : "none";
}
std::string bytes_of(const Said& said) { return striping(said).SerializeAsString(); }

// What a file got.
struct Made {
  std::size_t width = 0;
  Numbers bevies;
  std::uint32_t record_length = 0;
  bool operator==(const Made&) const = default;
};

constexpr std::uint32_t kInheritsAll = kInheritsFormat | kInheritsNodes | kInheritsBevies;

Envelope file_request(const std::string& folder, std::uint32_t inherits, const Said& said = {}) {
  static int file = 0;
  Envelope request = Client::create_request(folder + "/f" + std::to_string(++file), true, said.width);
  proto::Create& create = *request.mutable_create();
  create.set_inherits(inherits);
  create.mutable_nodes()->Assign(said.nodes.begin(), said.nodes.end());
  if (said.bevy) create.set_bevy(*said.bevy == 0 ? kNoBevies : *said.bevy);
  return request;
}
Made file(Client& client, const std::string& folder, std::uint32_t inherits = kInheritsAll, const Said& said = {}) {
  const Envelope request = file_request(folder, inherits, said);
  const auto reply = client.ask(request);
  REQUIRE(reply);
  const auto info = client.stat(request.create().path());
  REQUIRE(info);
  CHECK(reply->create_reply().has_format() == (inherits != 0));
  if (inherits != 0) CHECK(reply->create_reply().format().record_length() == info->format().record_length());
  return {static_cast<std::size_t>(info->layout().nodes_size()),
          {info->layout().bevies().begin(), info->layout().bevies().end()},
          info->format().record_length()};
}

}  // namespace

TEST_CASE("what a folder says of its files is shown by stat and list, after a restart too, and moves with it") {
  World world(8);
  const Said said{.nodes = {3, 1, 4, 2}, .bevy = 2, .record_length = 7};
  {
    Client client(world);
    REQUIRE(client.ask(folder_request("/d", said)));
    REQUIRE(client.mkdir("/plain"));
    CHECK(shown(client, "/d") == bytes_of(said));
  }
  world.start();
  world.heartbeats();
  Client client(world);
  CHECK(shown(client, "/d") == bytes_of(said));
  CHECK(shown(client, "/plain") == "none");
  const auto list = client.list("/");
  REQUIRE(list->entries.size() == 2);
  CHECK(list->entries[0].striping().SerializeAsString() == bytes_of(said));
  CHECK_FALSE(list->entries[1].has_striping());
  CHECK(file(client, "/d") == Made{4, {2, 2}, 7});
  REQUIRE(client.rename("/d", "/e"));
  CHECK(file(client, "/e") == Made{4, {2, 2}, 7});
  require_sound(world);
}

TEST_CASE("a file gets from its folder what it leaves to it, as far as the folder says it") {
  World world(8);
  Client client(world);
  REQUIRE(client.ask(folder_request("/d", {.width = 4, .bevy = 2, .record_length = 7})));
  REQUIRE(client.ask(folder_request("/format", {.record_length = 7})));
  REQUIRE(client.ask(folder_request("/width", {.width = 3})));
  REQUIRE(client.ask(folder_request("/nodes", {.nodes = {5, 2}})));
  CHECK(file(client, "/d") == Made{4, {2, 2}, 7});
  CHECK(file(client, "/d", 0) == Made{8, {}, 100});
  CHECK(file(client, "/d", kInheritsFormat) == Made{8, {}, 7});
  CHECK(file(client, "/d", kInheritsNodes) == Made{4, {}, 100});
  CHECK(file(client, "/d", kInheritsBevies) == Made{8, {2, 2, 2, 2}, 100});
  CHECK(file(client, "/format") == Made{8, {}, 7});
  CHECK(file(client, "/width", kInheritsAll, {.bevy = 0}) == Made{3, {}, 100});
  const Envelope request = file_request("/nodes", kInheritsAll);
  const auto named = client.ask(request);
  REQUIRE(named);
  const auto& nodes = named->create_reply().layout().nodes();
  CHECK(Numbers(nodes.begin(), nodes.end()) == Numbers{5, 2});
}

TEST_CASE("what the creator says himself wins, one thing at a time") {
  World world(8);
  Client client(world);
  REQUIRE(client.ask(folder_request("/d", {.nodes = {1, 2, 3, 4}, .bevy = 2})));
  CHECK(file(client, "/d", kInheritsBevies, {.width = 8}) == Made{8, {2, 2, 2, 2}, 100});
  CHECK(file(client, "/d", kInheritsNodes, {.bevy = 0}) == Made{4, {}, 100});
  const auto refused = client.ask(file_request("/d", kInheritsBevies, {.width = 3}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kInvalid);
  CHECK_THAT(refused.error().text, Catch::Contains("multiple of 4, not 3") && Catch::Contains("the folder /d") &&
                                       Catch::Contains("pif stat /d"));
}

TEST_CASE("a file that is written later has the format and layout of its folder when it was begun") {
  World world(4);
  Client client(world);
  REQUIRE(client.ask(folder_request("/d", {.width = 2, .record_length = 7})));
  auto request = Client::create_request("/d/f");
  request.mutable_create()->set_inherits(kInheritsAll);
  const auto made = client.ask(request);
  REQUIRE(made);
  REQUIRE(client.ask(change_request("/d", {})));
  auto commit = Client::commit_request(made->create_reply().file(), 2);
  commit.mutable_commit()->mutable_file_length()->set_bytes(14);
  REQUIRE(client.ask(commit));
  CHECK(client.stat("/d/f")->format().record_length() == 7);
  CHECK(client.stat("/d/f")->layout().nodes_size() == 2);
}

TEST_CASE("bevies of 0 are no parity, of a file and of a folder, though the file system has bevies for new files") {
  World world(8, 2);
  Client client(world);
  REQUIRE(client.ask(folder_request("/none", {.bevy = 0})));
  REQUIRE(client.ask(folder_request("/four", {.bevy = 4})));
  CHECK(file(client, "") == Made{8, {2, 2, 2, 2}, 100});
  CHECK(file(client, "", kInheritsAll, {.bevy = 0}) == Made{8, {}, 100});
  CHECK(file(client, "/none") == Made{8, {}, 100});
  CHECK(file(client, "/none", 0) == Made{8, {2, 2, 2, 2}, 100});
  CHECK(file(client, "/four") == Made{8, {4, 4}, 100});
  CHECK(client.ask(folder_request("/three", {.width = 3, .bevy = 0})));
}

TEST_CASE("a folder that is made gets what the folder above says then, or its own, or none") {
  World world(4);
  Client client(world);
  REQUIRE(client.ask(folder_request("/d", {.width = 2})));
  REQUIRE(client.mkdir("/d/same"));
  REQUIRE(client.mkdir("/d/a/b/c", true));
  REQUIRE(client.ask(folder_request("/d/own", {.width = 1})));
  REQUIRE(client.ask(folder_request("/d/none", {})));
  REQUIRE(client.ask(folder_request("/d/x/y", {.width = 3}, true)));
  REQUIRE(client.ask(change_request("/d", {.width = 1})));
  REQUIRE(client.mkdir("/d/later"));
  for (const char* path : {"/d/same", "/d/a", "/d/a/b", "/d/a/b/c"})
    CHECK(shown(client, path) == bytes_of({.width = 2}));
  CHECK(shown(client, "/d/own") == bytes_of({.width = 1}));
  CHECK(shown(client, "/d/none") == "none");
  CHECK(file(client, "/d/none").width == 4);
  for (const char* path : {"/d/x", "/d/x/y"}) CHECK(shown(client, path) == bytes_of({.width = 3}));
  CHECK(shown(client, "/d/later") == bytes_of({.width = 1}));
  REQUIRE(client.ask(folder_request("/d/same", {.width = 1}, true)));
  CHECK(shown(client, "/d/same") == bytes_of({.width = 2}));  // it was there
  CHECK(file(client, "/d/a/b/c").width == 2);
}

TEST_CASE("the owner changes what a folder says, the root's too, and takes it back; a file says nothing") {
  World world(4);
  Client owner(world, 500), user(world, 7), other(world, 8);
  Envelope open_to_all;
  open_to_all.mutable_set_attributes()->set_path("/");
  open_to_all.mutable_set_attributes()->set_mode(0777);
  REQUIRE(owner.ask(open_to_all));
  REQUIRE(user.ask(folder_request("/d", {.width = 2, .record_length = 7})));
  REQUIRE(user.ask(change_request("/d", {.width = 3})));
  CHECK(file(user, "/d") == Made{3, {}, 100});  // all of it was replaced
  CHECK(other.ask(change_request("/d", {.width = 1})).error().code == Code::kPermission);
  REQUIRE(owner.ask(change_request("/d", {.width = 1})));
  CHECK(file(user, "/d").width == 1);
  REQUIRE(user.ask(change_request("/d", {})));
  CHECK(shown(user, "/d") == "none");
  CHECK(file(user, "/d").width == 4);
  REQUIRE(owner.ask(change_request("/", {.width = 2})));
  CHECK(shown(user, "/") == bytes_of({.width = 2}));
  CHECK(file(user, "").width == 2);
  REQUIRE(user.create("/d/file", true));
  const auto refused = user.ask(change_request("/d/file", {.width = 1}));
  CHECK(refused.error().code == Code::kNotDirectory);
  CHECK_THAT(refused.error().text, Catch::Contains("/d/file is a file"));
  require_sound(world);
}

TEST_CASE("other changes of a folder's attributes leave what it says") {
  World world(4);
  Client client(world);
  REQUIRE(client.ask(folder_request("/d", {.width = 2})));
  Envelope request;
  request.mutable_set_attributes()->set_path("/d");
  request.mutable_set_attributes()->set_mode(0700);
  REQUIRE(client.ask(request));
  CHECK(shown(client, "/d") == bytes_of({.width = 2}));
}

TEST_CASE("what a folder says is as before if the directory cannot be written") {
  World world(4);
  Client client(world);
  REQUIRE(client.ask(folder_request("/d", {.width = 2})));
  REQUIRE(file(client, "/d").width == 2);
  world.store->commits_to_fail = 1;
  CHECK_FALSE(client.ask(change_request("/d", {.width = 3})));
  world.store->commits_to_fail = 1;
  CHECK_FALSE(client.ask(folder_request("/e", {.width = 3})));
  CHECK(file(client, "/d").width == 2);
  REQUIRE(client.mkdir("/e"));
  CHECK(file(client, "/e").width == 4);
}

TEST_CASE("what cannot be is refused at once, of a new folder and of one that is there, and says why") {
  World world(8, 2);
  Client client(world);
  REQUIRE(client.mkdir("/there"));
  const std::vector<std::pair<Said, std::string>> bad = {
      {{.nodes = {1, 99}, .bevy = 0}, "there is no node 99"},
      {{.nodes = {2, 1, 2}, .bevy = 0}, "node 2 is named twice"},
      {{.width = 3, .nodes = {1, 2}, .bevy = 0}, "a width of 3 with 2 nodes"},
      {{.bevy = 1}, "at least 2"},
      {{.width = 6, .bevy = 2}, "multiple of 4, not 6"},
      {{.nodes = {1, 2, 3}, .bevy = 2}, "multiple of 4, not 3"},
      {{.width = 3}, "multiple of 4, not 3"},  // bevies of the file system
      {{.width = 4097, .bevy = 0}, "4097 LFSs, and has at most 4096"},
      {{.bevy = 2049}, "4098 LFSs, and has at most 4096"},
      {{.bevy = UINT32_MAX}, "at most 4096"},
      {{.record_length = kRecordLengthMax + 1}, "record length"},
  };
  for (const auto& [said, text] : bad) {
    CAPTURE(text);
    for (const Envelope& request :
         {folder_request("/new", said), folder_request("/new/er", said, true), change_request("/there", said)}) {
      const auto refused = client.ask(request);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == Code::kInvalid);
      CHECK_THAT(refused.error().text, Catch::Contains(text));
    }
  }
  CHECK_FALSE(client.exists("/new"));
  CHECK(shown(client, "/there") == "none");
}

TEST_CASE("a folder may want more LFSs than there are, and ones that are down: its files cannot be made meanwhile") {
  World world(4);
  Client client(world);
  REQUIRE(client.ask(folder_request("/wide", {.width = 8})));
  REQUIRE(client.ask(folder_request("/bevies", {.bevy = 4})));
  REQUIRE(client.ask(folder_request("/named", {.nodes = {2}})));
  const auto refused = [&](const std::string& folder, const std::string& text) {
    const auto reply = client.ask(file_request(folder, kInheritsAll));
    REQUIRE_FALSE(reply);
    CHECK_THAT(reply.error().text, Catch::Contains(text) && Catch::Contains("the folder " + folder));
  };
  refused("/wide", "a width of 8 is more than the 4 LFSs");
  refused("/bevies", "at least 8 LFSs, and 4");
  CHECK(file(client, "/named").width == 1);
  for (int i = 0; i < 12; ++i) {
    world.clock.advance(std::chrono::seconds(1));
    for (const std::uint32_t id : {1u, 3u, 4u}) world.messenger->deliver(world.lfs_peer(id), world.heartbeat(id));
    world.run();
  }
  refused("/named", "node 2 (lfs1) is down");
  CHECK(client.ask(change_request("/named", {.nodes = {2, 1}})));
}

}  // namespace pif::server::testing
