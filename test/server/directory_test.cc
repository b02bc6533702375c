// What is refused at the door, what the owner may list, and what the checker finds.
#include "pif/kv/value.h"
#include "server/fixture.h"

#include <algorithm>
#include <numeric>

namespace pif::server::testing {
namespace {

constexpr std::uint32_t kKeep = 1, kIsCommitted = 2;  // FileStatesReply.states

TEST_CASE("heartbeats and questions of another cluster's LFS are refused") {
  World world;
  ClusterKey other = world.key;
  other.bytes[0] = std::byte{99};
  auto request = world.heartbeat(9);
  request.set_id(5);
  request.set_capability(
      mint(other, Capability{.uid = 0, .rights = kMayManage, .expiry = world.clock.wall_seconds() + 9}));
  const auto peer = world.lfs_peer(1);
  world.messenger->deliver(peer, request);
  request.set_id(6);
  request.set_capability(
      mint(world.key, Capability{.uid = 0, .rights = kMayRead, .expiry = world.clock.wall_seconds() + 9}));
  world.messenger->deliver(peer, request);
  world.run();
  CHECK(world.reply(peer, 5)->error().code() == static_cast<std::uint32_t>(Code::kBadCapability));
  CHECK(world.reply(peer, 6)->error().code() == static_cast<std::uint32_t>(Code::kBadCapability));
  CHECK(Client(world).nodes().nodes_size() == 4);
}

TEST_CASE("what the server did is told to anybody: each operation, how long it took, and errors by their code") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/a"));
  CHECK(client.mkdir("/a").error().code == Code::kExists);
  Envelope request;
  request.mutable_stats();
  const auto reply = client.ask(request);
  REQUIRE(reply);
  const proto::StatsReply& stats = reply->stats_reply();
  CHECK(stats.node() == "server");
  CHECK(!stats.version().empty());
  const auto made = std::find_if(stats.operations().begin(), stats.operations().end(),
                                 [](const auto& one) { return one.name() == "make_folder"; });
  REQUIRE(made != stats.operations().end());
  CHECK(made->count() == 2);
  CHECK(made->errors() == 1);
  CHECK(std::accumulate(made->counts().begin(), made->counts().end(), std::uint64_t{0}) == 2);
  CHECK(stats.error_codes().size() == 1);
  CHECK(stats.error_codes(0) == static_cast<std::uint32_t>(Code::kExists));
  CHECK(stats.error_counts(0) == 1);
}

TEST_CASE("an unknown version and an unknown operation get precise errors") {
  World world;
  Client client(world);
  Envelope request;
  request.set_version(7);
  request.set_id(800);
  request.mutable_stats();
  world.messenger->deliver(client.peer(), request);
  world.run();
  CHECK(client.answer(800).error().code == Code::kVersion);
  Envelope seal;
  seal.mutable_seal();
  CHECK(client.ask(seal).error().code == Code::kUnsupported);
}

TEST_CASE("files by id are listed for the owner only, with paths and states") {
  World world;
  Client owner(world), anna(world, 1001);
  REQUIRE(owner.mkdir("/a/b", true));
  const auto file = owner.put("/a/b/f", 4);
  const auto pending = owner.create("/a/p");
  Envelope request;
  request.mutable_list_files()->set_limit(1);
  CHECK(anna.ask(request).error().code == Code::kPermission);
  const auto first = owner.ask(request);
  REQUIRE(first);
  CHECK(first->list_files_reply().more());
  CHECK(first->list_files_reply().files(0).path() == "/a/b/f");
  CHECK(first->list_files_reply().files(0).state() == kIsCommitted);
  CHECK(first->list_files_reply().files(0).file_length().records() == 4);
  request.mutable_list_files()->set_after(file);
  const auto second = owner.ask(request);
  REQUIRE(second);
  CHECK_FALSE(second->list_files_reply().more());
  CHECK(second->list_files_reply().files(0).path() == "/a/p");
  CHECK(second->list_files_reply().files(0).state() == kKeep);
  CHECK(second->list_files_reply().files(0).file() == pending->file());
  request.mutable_list_files()->set_after(UINT64_MAX);
  const auto end = owner.ask(request);
  REQUIRE(end);
  CHECK(end->list_files_reply().files_size() == 0);
  CHECK_FALSE(end->list_files_reply().more());
  CHECK_FALSE(end->list_files_reply().capability().empty());
}

TEST_CASE("a directory of another file system or a newer release is refused") {
  World world;
  world.server.reset();
  Server other({.cluster = "c2", .key = world.key}, {*world.messenger, *world.store, world.entropy});
  const auto opened = other.open();
  CHECK(opened.error().code == Code::kInvalid);
  auto txn = std::move(world.store->write()).value();
  REQUIRE(txn->put(4, "version", "12345678\0\0\0\x09"));
  REQUIRE(txn->commit());
  Server later({.cluster = "c1", .key = world.key}, {*world.messenger, *world.store, world.entropy});
  CHECK(later.open().error().code == Code::kCorrupt);
}

TEST_CASE("the checker finds entries without rows, rows without entries, and flipped bytes") {
  World world;
  Client client(world);
  const auto file = client.put("/f");
  REQUIRE(client.mkdir("/d"));
  const std::string row_key = [&] {
    std::string key(8, '\0');
    for (int i = 0; i < 8; ++i) key[static_cast<std::size_t>(i)] = static_cast<char>(file >> (56 - 8 * i));
    return key;
  }();
  const auto damages = [&](auto&& harm) {
    auto txn = std::move(world.store->write()).value();
    harm(*txn);
    REQUIRE(txn->commit());
    return check_directory(*world.store)->damages;
  };
  std::string row, entry;
  const std::string entry_key = std::string(7, '\0') + "\x01" + "f";
  require_sound(world);
  CHECK_THAT(damages([&](kv::Transaction& txn) {
               row = **txn.get(1, row_key);
               REQUIRE(txn.erase(1, row_key));
             }).at(0),
             Catch::Contains("no row by id"));
  CHECK_THAT(damages([&](kv::Transaction& txn) {
               REQUIRE(txn.put(1, row_key, row));
               entry = **txn.get(0, entry_key);
               REQUIRE(txn.erase(0, entry_key));
             }).at(0),
             Catch::Contains("no entry"));
  CHECK_THAT(damages([&](kv::Transaction& txn) {
               entry[12] = static_cast<char>(entry[12] ^ 1);
               REQUIRE(txn.put(0, entry_key, entry));
             }).at(0),
             Catch::Contains("checksum"));
}

// The entry of the folder `from` (of the root) stands in the folder `parent`, too.
void put_entry_into(World& world, const std::string& from, std::uint64_t parent, const std::string& name) {
  const auto key = [](std::uint64_t folder, const std::string& text) { return kv::key_u64(folder) + text; };
  auto txn = std::move(world.store->write()).value();
  const std::string entry(**txn->get(0, key(1, from)));
  REQUIRE(txn->put(0, key(parent, name), entry));
  REQUIRE(txn->commit());
}

// A recursive remove went down for ever (found by fuzzing).
TEST_CASE("a folder that lies in itself is found, and not gone down for ever") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  const auto folder = client.stat("/d")->id();
  REQUIRE(client.mkdir("/d/e"));
  require_sound(world);
  put_entry_into(world, "d", folder + 1, "f");
  CHECK(client.remove("/d", true) == Code::kCorrupt);
  CHECK(client.mkdir("/other"));
  auto txn = std::move(world.store->write()).value();
  REQUIRE(txn->erase(0, std::string(7, '\0') + "\x01" + "d"));  // now it can be reached from itself only
  REQUIRE(txn->commit());
  txn.reset();
  const auto damages = check_directory(*world.store)->damages;
  CHECK(std::any_of(damages.begin(), damages.end(),
                    [](const auto& text) { return text.find("lies in itself") != text.npos; }));
}

}  // namespace
}  // namespace pif::server::testing
