// What the server finds when it starts: every call of its store may fail, and what is stored may be damaged or
// another's.
#include "pif/kv/value.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

enum Table : kv::Table {
  kEntriesTable,
  kFilesTable,
  kNodesTable,
  kRecentTable,
  kMetaTable,
  kNumbersTable,
  kTopTable,
  kInputLocksTable
};

struct Start {
  explicit Start(World& world_in) : world(world_in) { world.server.reset(); }

  Status open() {
    const auto store =
        sim::make_faulty_store("directory", kv::open_memory(world.state), world.faults, [] { return false; });
    Server server({.cluster = "c1", .key = world.key, .owner_uid = 500}, {*world.messenger, *store, world.entropy});
    return server.open();
  }
  // Opening it, after something was put where something else was; nothing: erased.
  Error open_after(kv::Table table, std::string_view key, std::optional<std::string> value) {
    {
      auto txn = std::move(world.store->write()).value();
      REQUIRE((value ? txn->put(table, key, *value) : txn->erase(table, key)));
      REQUIRE(txn->commit());
    }
    const auto opened = open();
    return opened ? Error{Code::kOk, {}, {}} : opened.error();
  }

  World& world;
};

// Starts again and again, each time with the next call failing, until none is left; returns how many there were.
std::uint64_t with_each_call_failing(Start& start) {
  for (std::uint64_t call = 0;; ++call) {
    start.world.faults->fail_at(call, sim::Fault::kIoError, false);
    const auto opened = start.open();
    const bool failed = start.world.faults->has_failed();
    INFO("call " << call << ": " << start.world.faults->failed_call());
    CHECK((opened ? Code::kOk : opened.error().code) == (failed ? Code::kIo : Code::kOk));
    start.world.faults->heal();
    if (!failed) return call;
  }
}

TEST_CASE("whichever call fails while a directory is made, that is said, and the next start makes it") {
  World world;
  world.state = kv::make_memory_state(static_cast<unsigned>(kDirectoryTables.size()));
  for (std::uint64_t call = 0;; ++call) {
    world.faults->fail_at(call, sim::Fault::kIoError, false);
    const auto store =
        sim::make_faulty_store("directory", kv::open_memory(world.state), world.faults, [] { return false; });
    const Status made = make_directory(*store, {world.cluster, ""}, 500, world.clock.wall_seconds());
    const bool failed = world.faults->has_failed();
    CHECK(made.has_value() == !failed);
    world.faults->heal();
    if (!failed) break;
    CHECK(call < 100);
  }
  world.start();
  world.heartbeats();
  CHECK(Client(world).mkdir("/a"));
  require_sound(world);
}

TEST_CASE("whichever call fails while a directory is loaded, that is said, and the next start has all of it") {
  World world;
  Client client(world);
  const auto removed = client.put("/removed");
  REQUIRE(client.put("/kept") != 0);
  REQUIRE(client.remove("/removed") == Code::kOk);  // no LFS answers
  const auto pending = client.create("/pending");
  REQUIRE(pending);
  world.clock.advance(std::chrono::hours(24 * 30));  // answers that were kept are old: they go at the start
  Start start(world);
  CHECK(with_each_call_failing(start) > 8);
  world.start();
  world.heartbeats();
  CHECK(Client(world).exists("/kept"));
  CHECK_FALSE(Client(world).exists("/removed"));
  const auto told = world.settles({1});
  REQUIRE(told.at(1).size() == 1);
  CHECK(told.at(1)[0].removed(0) == removed);
  require_sound(world);
}

TEST_CASE("a directory that is not whole, or of another file system or release, is not served, and why is said") {
  const auto opened_after = [](kv::Table table, std::string_view key, std::optional<std::string> value) {
    World world;
    Client(world).put("/f");
    return Start(world).open_after(table, key, std::move(value));
  };
  const std::string no_message = kv::seal_value("\xff\xff");
  CHECK(opened_after(kMetaTable, "other", kv::seal_value("anything")).code == Code::kOk);
  CHECK(opened_after(kMetaTable, "version", std::nullopt).code == Code::kCorrupt);
  CHECK(opened_after(kMetaTable, "version", "rotten").code == Code::kCorrupt);
  const auto newer = opened_after(kMetaTable, "version", kv::seal_value(kv::key_u32(kFormatVersion + 2)));
  CHECK(newer.code == Code::kVersion);
  CHECK_THAT(newer.text, Catch::Contains("has format version 4,"));
  CHECK(opened_after(kMetaTable, "version", kv::seal_value("none at all")).code == Code::kCorrupt);
  const auto before = opened_after(kMetaTable, "version", kv::seal_value(kv::key_u32(kFormatBefore)));
  CHECK(before.code == Code::kVersion);
  CHECK_THAT(before.text, Catch::Contains("pif up"));
  CHECK(opened_after(kMetaTable, "cluster", kv::seal_value("c2")).code == Code::kInvalid);
  CHECK_THAT(opened_after(kMetaTable, "cluster", std::nullopt).text, Catch::Contains("(unknown)"));
  CHECK(opened_after(kTopTable, "index", std::nullopt).code == Code::kCorrupt);
  CHECK(opened_after(kTopTable, "index", kv::seal_value("7")).code == Code::kCorrupt);
  CHECK(opened_after(kNumbersTable, "r", kv::seal_value("7")).code == Code::kCorrupt);
  CHECK(opened_after(kNodesTable, kv::key_u32(1), no_message).code == Code::kCorrupt);
  CHECK(opened_after(kNodesTable, kv::key_u32(1), "rotten").code == Code::kCorrupt);
  CHECK(opened_after(kFilesTable, kv::key_u64(1000), no_message).code == Code::kCorrupt);
  CHECK(opened_after(kFilesTable, kv::key_u64(1000), "rotten").code == Code::kCorrupt);
  CHECK(opened_after(kInputLocksTable, kv::key_u64(1) + kv::key_u64(2), no_message).code == Code::kCorrupt);
  CHECK(opened_after(kInputLocksTable, kv::key_u64(1), kv::seal_value("")).code == Code::kCorrupt);
  CHECK(opened_after(kRecentTable, kv::key_u64(1000), no_message).code == Code::kOk);  // only an answer: it goes
}

TEST_CASE("a directory that has entries but no format is not taken for a new one") {
  World world;
  world.state = kv::make_memory_state(static_cast<unsigned>(kDirectoryTables.size()));
  world.store = std::make_unique<FaultyStore>(kv::open_memory(world.state));
  CHECK(Start(world).open_after(kEntriesTable, kv::key_u64(1) + "f", kv::seal_value("entry")).code == Code::kCorrupt);
  world.store->fails_to_count = true;
  Server server({.cluster = "c1", .key = world.key}, {*world.messenger, *world.store, world.entropy});
  CHECK(server.open().error().code == Code::kIo);
}

}  // namespace
}  // namespace pif::server::testing
