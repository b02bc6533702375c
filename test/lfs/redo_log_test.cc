#include <cstring>
#include <optional>

#include <catch2/catch.hpp>

#include "../../lfs/src/store/redo_log.h"
#include "pif/base/checksum.h"
#include "pif/base/limits.h"
#include "pif/component/memory_storage.h"

using namespace pif;
using lfs::LogEntry;
using lfs::RedoLog;

namespace {

constexpr const char* kPath = "/log/redo.log";
// docs/FORMAT.md "Redo log": where heads and entries, and their fields, are.
constexpr std::uint64_t kFirstHead = 4096, kFirstEntry = 8192;
constexpr std::uint64_t kHeadBytes = 40, kEntryBytes = 64;
constexpr std::uint64_t kVersionAt = 8, kNumberAt = 8, kBytesAt = 32, kChainAt = 40;

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
      seen.push_back({number,
                      entry.file.value,
                      entry.first_chunk,
                      {reinterpret_cast<const char*>(entry.data.data()), entry.data.size()}});
      return {};
    });
    INFO((opened ? std::string() : opened.error().to_string()));
    REQUIRE(opened.has_value());
    return seen;
  }
  std::uint64_t add(std::uint64_t file, std::uint64_t chunk, const std::string& data) {
    const auto number = log->last_number() + 1;
    log->add({FileId(file), chunk, 4096, std::as_bytes(std::span(data))}, number);
    REQUIRE(log->write_batch().has_value());
    log->end_batch(true);
    return number;
  }
  // What opening the log ends with.
  Code open_code() {
    RedoLog opening(*storage, kPath, 1u << 20);
    const auto opened = opening.open([](const LogEntry&, std::uint64_t) -> Status { return {}; });
    return opened ? Code::kOk : opened.error().code;
  }
  // Changes a field of a head or entry, and makes its hash, the last of its fields, right again.
  template <typename T>
  void forge(std::uint64_t at, std::uint64_t bytes, std::uint64_t field, T value) {
    disk->edit(kPath, [&](std::vector<std::byte>& bytes_of_log) {
      std::memcpy(bytes_of_log.data() + at + field, &value, sizeof value);
      const auto hash = hash_bytes(std::span(bytes_of_log).subspan(at, bytes - sizeof(std::uint64_t)));
      std::memcpy(bytes_of_log.data() + at + bytes - sizeof hash, &hash, sizeof hash);
    });
  }
  std::uint64_t size() { return storage->open(kPath, component::OpenMode::kRead).value()->size().value(); }
  void resize(std::uint64_t size) {
    REQUIRE(storage->open(kPath, component::OpenMode::kWrite).value()->resize(size).has_value());
  }

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

TEST_CASE("an intact entry of an unknown type is a newer program's, and not taken for the end of the log") {
  Fixture f;
  f.open();
  f.add(1, 5, "first");
  const std::uint64_t second = f.size();
  f.add(2, 6, "second");
  f.forge(second, kEntryBytes, 0, std::uint32_t{0x46646552});
  CHECK(f.open_code() == Code::kVersion);
  f.forge(second, kEntryBytes, 0, lfs::LogEntryType::kChunks);
  CHECK(f.open().size() == 2);
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
  f.log->add({FileId(1), 1, 4096, bytes}, 1);
  f.log->add({FileId(2), 2, 4096, bytes}, 2);
  REQUIRE(f.log->write_batch().has_value());
  f.log->end_batch(false);        // as if the write had failed after it reached the disk
  CHECK(f.add(3, 3, data) == 3);  // where entry 1 was; entry 2 still stands behind it
  const auto seen = f.open();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].file == 3);
  CHECK(f.add(4, 4, data) == 4);
  CHECK(f.open().size() == 2);
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

TEST_CASE("whichever call fails while a log is made or opened, that is said, and the next time it is whole") {
  for (const bool is_new : {true, false}) {
    bool failed = true;
    for (unsigned failing = 0; failed; ++failing) {
      Fixture f;
      if (!is_new) {
        f.open();
        f.add(1, 1, "one");
      }
      unsigned calls = 0;
      f.disk->set_fault([&](std::string_view, std::string_view) { return calls++ == failing ? Code::kIo : Code::kOk; });
      INFO("call " << failing << (is_new ? " of making it" : " of opening it"));
      const auto code = f.open_code();
      failed = calls > failing;
      CHECK(code == (failed ? Code::kIo : Code::kOk));
      f.disk->set_fault({});
      CHECK(f.open().size() == (is_new ? 0 : 1));
    }
  }
}

TEST_CASE("a log of a newer format is left alone, even while it has no entries") {
  Fixture f;
  f.open();
  f.forge<std::uint32_t>(kFirstHead, kHeadBytes, kVersionAt, kFormatVersion + 1);
  CHECK(f.open_code() == Code::kVersion);
  CHECK(f.open_code() == Code::kVersion);
}

TEST_CASE("a head that cannot be read to its end is none") {
  Fixture f;
  f.open();
  f.add(1, 1, "one");
  f.disk->set_fault(
      [](std::string_view call, std::string_view) { return call == "read" ? Code::kEndOfFile : Code::kOk; });
  CHECK(f.open_code() == Code::kCorrupt);
  f.disk->set_fault({});
  CHECK(f.open().size() == 1);
}

TEST_CASE("a log with entries but no head that is whole is damaged, not empty") {
  Fixture f;
  f.open();
  f.add(1, 1, "one");
  f.disk->flip_bit(kPath, kFirstHead + 20, 1);
  CHECK(f.open_code() == Code::kCorrupt);
}

TEST_CASE("a whole entry that is not the next one of its round is where the log ends") {
  const auto changed = [](std::uint64_t field, std::uint64_t value) {
    Fixture f;
    f.open();
    f.add(1, 1, "one");
    f.forge(kFirstEntry, kEntryBytes, field, value);
    return f.open().size();
  };
  CHECK(changed(kNumberAt, 1) == 1);  // as it was
  CHECK(changed(kNumberAt, 2) == 1);  // 1 was of a batch that failed
  CHECK(changed(kNumberAt, 0) == 0);
  CHECK(changed(kChainAt, 12345) == 0);
  CHECK(changed(kBytesAt, 1000) == 0);        // longer than the log
  CHECK(changed(kBytesAt, UINT64_MAX) == 0);  // than any entry may be
}

TEST_CASE("an entry that cannot be brought home ends the opening with why") {
  Fixture f;
  f.open();
  f.add(1, 1, "one");
  RedoLog log(*f.storage, kPath, 1u << 20);
  const auto opened = log.open([](const LogEntry&, std::uint64_t) -> Status { return fail(Code::kNoSpace, "full"); });
  REQUIRE(!opened);
  CHECK(opened.error().code == Code::kNoSpace);
}

TEST_CASE("a batch whose write fails leaves the log usable; one whose sync fails does not") {
  Fixture f;
  f.open();
  const std::string data = "12345678";
  const auto failing = [&](std::string_view what) {
    f.disk->set_fault([what](std::string_view call, std::string_view) { return call == what ? Code::kIo : Code::kOk; });
    f.log->add({FileId(1), 1, 4096, std::as_bytes(std::span(data))}, f.log->last_number() + 1);
    const auto written = f.log->write_batch();
    f.log->end_batch(false);
    f.disk->set_fault({});
    return written ? Code::kOk : written.error().code;
  };
  CHECK(failing("write") == Code::kIo);
  CHECK(!f.log->failed());
  CHECK(f.add(2, 2, data) == 2);
  CHECK(failing("sync") == Code::kIo);
  CHECK(f.log->failed());
  CHECK(failing("") == Code::kIo);  // whatever works now
  f.disk->crash();
  f.storage = component::make_memory_storage(f.disk);
  CHECK(f.open().size() == 1);
}
