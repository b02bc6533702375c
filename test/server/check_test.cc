// What `pif-server check` finds in a directory that was harmed, one harm at a time.
#include "pif/kv/value.h"
#include "pif/proto/stored.pb.h"
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

const std::string kNoMessage = kv::seal_value("\xff\xff");

std::string sealed(const google::protobuf::MessageLite& message) { return kv::seal_value(message.SerializeAsString()); }
std::string entry_key(std::uint64_t folder, const std::string& name) { return kv::key_u64(folder) + name; }

proto::StoredEntry entry(std::uint64_t id, proto::EntryType type = proto::FOLDER) {
  proto::StoredEntry out;
  out.set_id(id);
  out.set_type(type);
  return out;
}

// All that is said of a directory with one file when this is stored in it too; nothing: when the key is erased.
std::string said_of(kv::Table table, const std::string& key, std::optional<std::string> value) {
  World world;
  Client(world).put("/f");
  auto txn = std::move(world.store->write()).value();
  REQUIRE((value ? txn->put(table, key, *value) : txn->erase(table, key)));
  REQUIRE(txn->commit());
  txn.reset();
  std::string all;
  const auto report = check_directory(*world.store);
  for (const auto& damage : report->damages) all += damage + "\n";
  return all;
}

}  // namespace

TEST_CASE("the checker says of each harm what it is") {
  using Catch::Contains;
  CHECK(said_of(kMetaTable, "other", kv::seal_value("anything")).empty());
  CHECK_THAT(said_of(kEntriesTable, "short", kv::seal_value("x")), Contains("entries has a key or value"));
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), kNoMessage), Contains("entries has a key or value"));
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "a/b"), sealed(entry(1000))), Contains("name that is not allowed"));
  CHECK_THAT(said_of(kEntriesTable, entry_key(77, "0/a"), sealed(entry(1000, proto::FILE_ENTRY))),
             Contains("fork 0/a is of file 77, which is not there"));
  CHECK_THAT(said_of(kEntriesTable, entry_key(0, "x"), sealed(entry(1000))),
             Contains("is in folder 0, which is not there"));
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), sealed(entry(1))), Contains("is there twice"));
  CHECK_THAT(said_of(kEntriesTable, entry_key(0, "/"), std::nullopt), Contains("the root folder is missing"));
  CHECK_THAT(said_of(kFilesTable, "short", kv::seal_value("x")), Contains("files has a key or value"));
  CHECK_THAT(said_of(kFilesTable, kv::key_u64(1000), kNoMessage), Contains("files has a key or value"));
  CHECK_THAT(said_of(kMetaTable, "f" + kv::key_u64(1000), kNoMessage), Contains("meta has a value"));
  CHECK_THAT(said_of(kInputLocksTable, "short", kv::seal_value("")), Contains("input-locks has a key or value"));
  constexpr std::uint64_t kForeign = std::uint64_t{77} << 32;
  CHECK_THAT(said_of(kMetaTable, "f" + kv::key_u64(kForeign), kNoMessage), Contains("of no range that was begun here"));
  for (const auto table : {kNodesTable, kRecentTable, kNumbersTable})
    CHECK_THAT(said_of(table, "key", "rotten"), Contains("checksum"));
}

TEST_CASE("the checker looks into layouts, states and places") {
  using Catch::Contains;
  auto twice = entry(1000, proto::FILE_ENTRY);
  for (const std::uint32_t node : {1, 1}) twice.mutable_layout()->add_nodes(node);
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), sealed(twice)), Contains("has a node twice"));
  auto bevies = entry(1000, proto::FILE_ENTRY);
  bevies.mutable_layout()->add_nodes(1);
  bevies.mutable_layout()->add_bevies(3);
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), sealed(bevies)), Contains("layout that cannot be"));
  auto striped = entry(1000);
  striped.mutable_striping()->set_bevy(2);
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), sealed(striped)), !Contains("striping"));
  striped.mutable_striping()->set_width(3);
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), sealed(striped)),
             Contains("folder 1000 (x) has striping that cannot be: bevies of 2 need a width"));
  auto file = entry(1000, proto::FILE_ENTRY);
  file.mutable_striping()->set_width(1);
  CHECK_THAT(said_of(kEntriesTable, entry_key(1, "x"), sealed(file)), Contains("has the striping of a folder"));
  proto::StoredFile row;
  row.set_state(9);
  CHECK_THAT(said_of(kFilesTable, kv::key_u64(1000), sealed(row)), Contains("unknown state 9"));
  World world;
  const auto id = Client(world).put("/f");
  row.set_state(2);
  row.set_parent(1);
  row.set_name("g");
  const auto with_row = [&] {
    auto txn = std::move(world.store->write()).value();
    REQUIRE(txn->put(kFilesTable, kv::key_u64(id), sealed(row)));
    REQUIRE(txn->commit());
    txn.reset();
    return check_directory(*world.store)->damages.at(0);
  };
  CHECK_THAT(with_row(), Contains("is f by its entry and g by its row"));
  row.set_parent(7);
  row.set_name("f");
  CHECK_THAT(with_row(), Contains("by its entry and f by its row"));
}

TEST_CASE("whichever call fails while a directory is checked, it is not called sound") {
  World world;
  Client(world).put("/f");
  bool failed = true;
  for (std::uint64_t call = 0; failed; ++call) {
    world.faults->fail_at(call, sim::Fault::kIoError, false);
    const auto report = check_directory(*world.store);
    failed = world.faults->has_failed();
    CHECK(report.has_value() == !failed);
    if (report) CHECK(report->damages.empty());
    world.faults->heal();
  }
}

TEST_CASE("the checker stops listing where nobody reads on") {
  World world;
  auto txn = std::move(world.store->write()).value();
  for (std::uint32_t i = 0; i < 10'100; ++i) REQUIRE(txn->put(kNodesTable, kv::key_u32(i), "rotten"));
  REQUIRE(txn->commit());
  txn.reset();
  CHECK(check_directory(*world.store)->damages.size() == 10'000);
}

}  // namespace pif::server::testing
