#include <optional>

#include <catch2/catch.hpp>

#include "../../lfs/src/redo_log.h"
#include "pif/component/memory_storage.h"

using namespace pif;
using lfs::LogEntry;
using lfs::RedoLog;

namespace {

constexpr const char* kPath = "/log/redo.log";

struct Seen {
  std::uint64_t number;
  std::uint64_t file;
  std::uint64_t chunk;
  std::string data;
  bool operator==(const Seen&) const = default;
};

struct Fixture {
  Fixture() {
    REQUIRE(storage->make_folder("/log").has_value());
    REQUIRE(storage->sync_folder("/").has_value());
  }

  std::vector<Seen> open() {
    std::vector<Seen> seen;
    log.emplace(*storage, kPath, 1u << 20);
    const auto opened = log->open([&](const LogEntry& entry, std::uint64_t number) -> Status {
      seen.push_back({number, entry.file.value, entry.first_chunk,
                      {reinterpret_cast<const char*>(entry.data.data()), entry.data.size()}});
      return {};
    });
    INFO((opened ? std::string() : opened.error().to_string()));
    REQUIRE(opened.has_value());
    return seen;
  }
  std::uint64_t add(std::uint64_t file, std::uint64_t chunk, const std::string& data) {
    const auto number = log->add({FileId(file), chunk, 4096, std::as_bytes(std::span(data))});
    REQUIRE(log->write_batch().has_value());
    log->end_batch(true);
    return number;
  }
  std::uint64_t size() { return storage->open(kPath, component::Access::kRead).value()->size().value(); }
  void resize(std::uint64_t size) { REQUIRE(storage->open(kPath, component::Access::kWrite).value()->resize(size).has_value()); }

  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> storage = component::make_memory_storage(disk);
  std::optional<RedoLog> log;
};

}  // namespace

TEST_CASE("a log that cannot be read to its end is not taken for a shorter one") {
  Fixture f;
  f.open();
  f.add(1, 5, "first");
  f.add(2, 6, std::string(5000, 'x'));
  for (const int nth : {2, 3, 4, 5}) {  // after the two heads: headers and data of the entries
    int reads = 0;
    f.disk->set_fault([&](std::string_view call, std::string_view) {
      return call == "read" && reads++ == nth ? Code::kEndOfFile : Code::kOk;
    });
    RedoLog log(*f.storage, kPath, 1u << 20);
    const auto opened = log.open([](const LogEntry&, std::uint64_t) -> Status { return {}; });
    REQUIRE(!opened);
    CHECK(opened.error().code == Code::kIo);
    f.disk->set_fault({});
  }
  CHECK(f.open().size() == 2);
}

TEST_CASE("entries come back in order, as often as the log is opened") {
  Fixture f;
  CHECK(f.open().empty());
  f.add(1, 5, "first");
  f.add(2, 6, std::string(5000, 'x'));
  f.add(1, 5, "");
  for (int i = 0; i < 3; ++i) {
    const auto seen = f.open();
    REQUIRE(seen.size() == 3);
    CHECK(seen[0] == Seen{1, 1, 5, "first"});
    CHECK(seen[1] == Seen{2, 2, 6, std::string(5000, 'x')});
    CHECK(seen[2] == Seen{3, 1, 5, ""});
  }
  CHECK(f.add(3, 1, "fourth") == 4);
  CHECK(f.open().size() == 4);
}

TEST_CASE("wherever the log is cut, whole entries before the cut come back and the rest is ignored") {
  Fixture f;
  f.open();
  std::vector<std::uint64_t> ends = {f.size()};
  for (unsigned i = 0; i < 4; ++i) {
    f.add(i, i, std::string(i * 30 + 1, 'a'));
    ends.push_back(f.size());
  }
  for (std::uint64_t cut = ends.back(); cut >= ends.front(); --cut) {
    f.resize(cut);
    std::size_t whole = 0;
    // Padding behind an entry is not part of it.
    while (whole < 4 && ends[whole] + 64 + whole * 30 + 1 <= cut) ++whole;
    INFO("cut at " << cut);
    CHECK(f.open().size() == whole);
  }
}

TEST_CASE("a flipped bit ends the log there, wherever it is") {
  Fixture f;
  f.open();
  const auto first = f.size();
  f.add(1, 1, "one");
  const auto second = f.size();
  f.add(2, 2, "two");
  for (std::uint64_t byte = first; byte < second; ++byte) {
    if (byte - first >= 64 + 3) break;  // padding
    f.disk->flip_bit(kPath, byte, 2);
    CHECK(f.open().empty());
    f.disk->flip_bit(kPath, byte, 2);
  }
  CHECK(f.open().size() == 2);
}

TEST_CASE("entries of an earlier round are never taken for new ones, and numbers go on") {
  Fixture f;
  f.open();
  for (unsigned i = 0; i < 5; ++i) f.add(9, i, "same size");
  REQUIRE(f.log->restart(0).has_value());
  CHECK(f.open().empty());
  CHECK(f.add(9, 100, "same size") == 6);
  const auto seen = f.open();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].chunk == 100);
  REQUIRE(f.log->restart(50).has_value());
  CHECK(f.open().empty());
  CHECK(f.add(9, 101, "x") == 51);
}

TEST_CASE("an entry of a batch that failed is not taken for one after a batch that did not") {
  Fixture f;
  f.open();
  const std::string data = "12345678";
  const auto bytes = std::as_bytes(std::span(data));
  f.log->add({FileId(1), 1, 4096, bytes});
  f.log->add({FileId(2), 2, 4096, bytes});
  REQUIRE(f.log->write_batch().has_value());
  f.log->end_batch(false);  // as if the write had failed after it reached the disk
  f.add(3, 3, data);        // where entry 1 was; entry 2 still stands behind it
  const auto seen = f.open();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].file == 3);
}

TEST_CASE("a log torn while it starts over is whole: one of its heads always is") {
  for (unsigned failing = 0; failing < 4; ++failing) {
    Fixture f;
    f.open();
    f.add(1, 1, "one");
    unsigned calls = 0;
    f.disk->set_fault([&](std::string_view, std::string_view) { return calls++ == failing ? Code::kIo : Code::kOk; });
    (void)f.log->restart(0);
    f.disk->set_fault({});
    f.disk->crash();
    f.storage = component::make_memory_storage(f.disk);
    const auto seen = f.open();
    CHECK(seen.size() <= 1);
    CHECK(f.add(2, 2, "two") == 2);
  }
}
