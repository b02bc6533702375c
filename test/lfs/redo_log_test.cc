#include <cstring>
#include <optional>
#include <random>

#include <catch2/catch.hpp>

#include "../../lfs/src/redo/older_log.h"
#include "../../lfs/src/redo/redo_log.h"
#include "older_log.h"
#include "pif/base/checksum.h"
#include "pif/component/memory_storage.h"

using namespace pif;
using lfs::LogEntry;
using lfs::LoggedRequests;
using lfs::RedoLog;
using lfs::RequestKey;
using lfs::test::OlderLog;

namespace {

const std::string kFolder = "/log";
// docs/FORMAT.md "Redo log": where heads and entries, and their fields, are.
constexpr std::uint64_t kFirstEntry = 4096;
constexpr std::uint64_t kHeadBytes = 40, kEntryBytes = 64;
constexpr std::uint64_t kVersionAt = 8, kNumberAt = 8, kBytesAt = 32, kChainAt = 40;
constexpr std::uint32_t kVersion = 2;

// A new log's first round is in redo.1, the next one in redo.0.
std::string path_of(std::uint64_t round) { return kFolder + (round % 2 == 0 ? "/redo.0" : "/redo.1"); }

struct Seen {
  std::uint64_t number;
  std::uint64_t file;
  std::uint64_t chunk;
  std::string data;
  bool operator==(const Seen&) const = default;
};

Result<bool> ignore(const LogEntry&, std::uint64_t) { return true; }

struct Fixture {
  Fixture() {
    REQUIRE(storage->make_folder("/log").has_value());
    REQUIRE(storage->sync_folder("/").has_value());
  }

  // was_needed: of the entry of that number.
  std::vector<Seen> open(const std::function<bool(std::uint64_t number)>& was_needed = {}) {
    std::vector<Seen> seen;
    log.emplace(*storage, kFolder, 1u << 20);
    const auto opened = log->open([&](const LogEntry& entry, std::uint64_t number) -> Result<bool> {
      seen.push_back({number,
                      entry.file.value,
                      entry.first_chunk,
                      {reinterpret_cast<const char*>(entry.data.data()), entry.data.size()}});
      return !was_needed || was_needed(number);
    });
    INFO((opened ? std::string() : opened.error().to_string()));
    REQUIRE(opened.has_value());
    return seen;
  }
  // A batch of one entry.
  std::uint64_t add(std::uint64_t file, std::uint64_t chunk, const std::string& data,
                    std::vector<RequestKey> requests = {}) {
    const auto number = log->last_number() + 1;
    log->add({FileId(file), chunk, 4096, std::as_bytes(std::span(data))}, number);
    log->close_batch(std::move(requests));
    REQUIRE(log->write_batch().has_value());
    log->end_batch(true);
    return number;
  }
  // What opening the log ends with.
  Code open_code() {
    RedoLog opening(*storage, kFolder, 1u << 20);
    const auto opened = opening.open(ignore);
    return opened ? Code::kOk : opened.error().code;
  }
  // Changes a field of a head or entry, and makes its hash, the last of its fields, right again.
  template <typename T>
  void forge(std::uint64_t at, std::uint64_t bytes, std::uint64_t field, T value, std::uint64_t round = 1) {
    disk->edit(path_of(round), [&](std::vector<std::byte>& bytes_of_log) {
      std::memcpy(bytes_of_log.data() + at + field, &value, sizeof value);
      const auto hash = hash_bytes(std::span(bytes_of_log).subspan(at, bytes - sizeof(std::uint64_t)));
      std::memcpy(bytes_of_log.data() + at + bytes - sizeof hash, &hash, sizeof hash);
    });
  }
  std::uint64_t size(std::uint64_t round = 1) {
    return storage->open(path_of(round), component::OpenMode::kRead).value()->size().value();
  }
  void resize(std::uint64_t size) {
    REQUIRE(storage->open(path_of(1), component::OpenMode::kWrite).value()->resize(size).has_value());
  }
  void fail_call(unsigned nth, unsigned& calls) {
    disk->set_fault(
        [nth, &calls](std::string_view, std::string_view) { return calls++ == nth ? Code::kIo : Code::kOk; });
  }
  void power_cut() {
    disk->set_fault({});
    disk->crash();
    storage = component::make_memory_storage(disk);
  }

  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> storage = component::make_memory_storage(disk);
  std::optional<RedoLog> log;
};

// Behind an entry of that many bytes and the one that names its batch's requests.
std::uint64_t batch_bytes(std::size_t data, std::size_t requests = 0) {
  return kEntryBytes + (data + 7) / 8 * 8 + kEntryBytes + 8 + 16 * requests;
}

}  // namespace

TEST_CASE("a log that cannot be read to its end is not taken for a shorter one") {
  Fixture f;
  f.open();
  f.add(1, 5, "first");
  f.add(2, 6, std::string(5000, 'x'));
  constexpr int kHeads = 4;  // of two files, each looked at twice
  for (int nth = kHeads; nth < kHeads + 8; ++nth) {
    int reads = 0;
    f.disk->set_fault([&](std::string_view call, std::string_view) {
      return call == "read" && reads++ == nth ? Code::kEndOfFile : Code::kOk;
    });
    CHECK(f.open_code() == Code::kIo);
    f.disk->set_fault({});
  }
  CHECK(f.open().size() == 2);
}

TEST_CASE("entries and requests come back in order, as often as the log is opened") {
  Fixture f;
  CHECK(f.open().empty());
  f.add(1, 5, "first", {{7, 1}});
  f.add(2, 6, std::string(5000, 'x'), {{7, 2}, {8, 1}});
  f.add(1, 5, "");
  for (int i = 0; i < 3; ++i) {
    const auto seen = f.open();
    REQUIRE(seen.size() == 3);
    CHECK(seen[0] == Seen{1, 1, 5, "first"});
    CHECK(seen[1] == Seen{2, 2, 6, std::string(5000, 'x')});
    CHECK(seen[2] == Seen{3, 1, 5, ""});
    CHECK(f.log->found().done == std::vector<RequestKey>{{7, 1}, {7, 2}, {8, 1}});
    CHECK(f.log->found().forgotten.empty());
  }
  CHECK(f.add(3, 1, "fourth") == 4);
  CHECK(f.open().size() == 4);
}

TEST_CASE("wherever the log is cut, whole batches before the cut come back and the rest is ignored") {
  Fixture f;
  f.open();
  std::vector<std::uint64_t> ends = {kFirstEntry};
  for (unsigned i = 0; i < 4; ++i) {
    f.add(i, i, std::string(i * 30 + 1, 'a'), {{9, i + 1}});
    ends.push_back(ends.back() + batch_bytes(i * 30 + 1, 1));
    CHECK(f.size() == ends.back());
  }
  for (std::uint64_t cut = ends.back(); cut >= ends.front(); --cut) {
    f.resize(cut);
    std::size_t whole = 0;
    while (whole < 4 && ends[whole + 1] <= cut) ++whole;
    INFO("cut at " << cut);
    CHECK(f.open().size() == whole);
    CHECK(f.log->found().done.size() == whole);
  }
}

TEST_CASE("a batch of several entries counts only with the last of them") {
  Fixture f;
  f.open();
  const std::string data = "12345678";
  for (std::uint64_t number = 1; number <= 3; ++number)
    f.log->add({FileId(number), 0, 4096, std::as_bytes(std::span(data))}, number);
  f.log->close_batch({{7, 1}});
  REQUIRE(f.log->write_batch().has_value());
  f.log->end_batch(true);
  const std::uint64_t entry = kEntryBytes + data.size();
  for (const std::uint64_t torn : {0 * entry, 1 * entry, 2 * entry, 3 * entry}) {  // of each entry
    f.disk->flip_bit(path_of(1), kFirstEntry + torn + 20, 1);
    CHECK(f.open().empty());
    CHECK(f.log->found().done.empty());
    f.disk->flip_bit(path_of(1), kFirstEntry + torn + 20, 1);
  }
  CHECK(f.open().size() == 3);
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
  f.add(1, 1, "one", {{7, 1}});
  f.add(2, 2, "two", {{7, 2}});
  for (std::uint64_t byte = kFirstEntry; byte < kFirstEntry + batch_bytes(3, 1); ++byte) {
    if (byte >= kFirstEntry + 64 + 3 && byte < kFirstEntry + 64 + 8) continue;  // padding
    f.disk->flip_bit(path_of(1), byte, 2);
    CHECK(f.open().empty());
    f.disk->flip_bit(path_of(1), byte, 2);
  }
  CHECK(f.open().size() == 2);
}

TEST_CASE("entries of an earlier round are never taken for new ones, and numbers go on") {
  Fixture f;
  f.open();
  for (unsigned i = 0; i < 5; ++i) f.add(9, i, "same size");
  REQUIRE(f.log->checkpoint(0, {}).has_value());
  CHECK(f.open().empty());
  CHECK(f.add(9, 100, "same size") == 6);
  const auto seen = f.open();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].chunk == 100);
  REQUIRE(f.log->checkpoint(50, {}).has_value());  // in the file of the first round, which has five entries
  CHECK(f.open().empty());
  CHECK(f.add(9, 101, "x") == 51);
  CHECK(f.open().size() == 1);
}

TEST_CASE("requests go along from round to round, and through every start") {
  Fixture f;
  f.open();
  f.add(1, 1, "one", {{7, 1}, {8, 1}});
  REQUIRE(f.log->checkpoint(0, {{{5, 40}}, {{7, 1}, {8, 1}}}).has_value());
  CHECK(f.log->empty());
  CHECK(f.open().empty());
  CHECK(f.log->empty());
  CHECK(f.log->found().done == std::vector<RequestKey>{{7, 1}, {8, 1}});
  CHECK(f.log->found().forgotten == std::vector<RequestKey>{{5, 40}});
  f.add(1, 1, "two", {{7, 2}});
  CHECK(!f.log->empty());
  for (int start = 0; start < 3; ++start) {
    f.open();
    REQUIRE(f.log->confirm(0).has_value());
    CHECK(f.open().empty());
    CHECK(f.log->found().done == std::vector<RequestKey>{{7, 1}, {8, 1}, {7, 2}});
    CHECK(f.log->found().forgotten == std::vector<RequestKey>{{5, 40}});
  }
}

TEST_CASE("the requests of the last batch are doubtful if it was of no use any more; those of others are done") {
  Fixture f;
  f.open();
  f.add(1, 1, "one", {{7, 1}});
  f.add(1, 2, "two", {{7, 2}});
  f.open([](std::uint64_t) { return false; });
  CHECK(f.log->found().done == std::vector<RequestKey>{{7, 1}});
  CHECK(f.log->found().forgotten == std::vector<RequestKey>{{7, 2}});
  f.open([](std::uint64_t number) { return number == 2; });
  CHECK(f.log->found().done == std::vector<RequestKey>{{7, 1}, {7, 2}});
}

TEST_CASE("an entry of a batch that failed is not taken for one after a batch that did not") {
  Fixture f;
  f.open();
  const std::string data = "12345678";
  const auto bytes = std::as_bytes(std::span(data));
  f.log->add({FileId(1), 1, 4096, bytes}, 1);
  f.log->add({FileId(2), 2, 4096, bytes}, 2);
  f.log->close_batch({});
  REQUIRE(f.log->write_batch().has_value());
  f.log->end_batch(false);        // as if the write had failed after it reached the disk
  CHECK(f.add(3, 3, data) == 3);  // where entry 1 was; entry 2 still stands behind it
  const auto seen = f.open();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].file == 3);
  CHECK(f.add(4, 4, data) == 4);
  CHECK(f.open().size() == 2);
}

TEST_CASE("a checkpoint that is torn is done or not done: requests are known before it, and after it") {
  constexpr std::size_t kBlock = 512;
  for (unsigned failing = 0; failing < 5; ++failing) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      Fixture f;
      f.open();
      f.add(1, 1, "one", {{7, 1}});
      std::vector<RequestKey> many = {{7, 1}};
      for (std::uint64_t i = 2; i < 200; ++i) many.push_back({8, i});
      unsigned calls = 0;
      f.fail_call(failing, calls);
      const auto done = f.log->checkpoint(0, {{}, many});
      f.disk->set_fault({});
      std::mt19937_64 dice(seed);
      f.disk->crash(kBlock, [&](std::uint64_t limit) { return dice() % limit; });
      f.storage = component::make_memory_storage(f.disk);
      const auto seen = f.open();
      INFO("call " << failing << ", seed " << seed);
      CHECK(f.log->found().done.at(0) == RequestKey{7, 1});
      CHECK((f.log->found().done.size() == many.size() ? seen.empty() : seen.size() == 1));
      if (done) CHECK(f.log->found().done == many);
      CHECK(f.add(2, 2, "two") == 2);
    }
  }
}

namespace {

// What a log must have after a power cut: all batches that were synced since a checkpoint that was, perhaps the one
// that was under way; and the requests of these and of all before.
struct Model {
  std::uint64_t entries_min = 0, entries_max = 0;  // since the checkpoint
  std::uint64_t requests = 0;                      // 1 to this one
};

// Batches of two entries, and checkpoints, until a call fails; then the power is cut, and any part of what was not
// synced is lost.
void check_cut(unsigned failing, std::uint64_t seed) {
  Fixture f;
  f.open();
  std::mt19937_64 dice(seed);
  unsigned calls = 0;
  f.fail_call(failing, calls);
  LoggedRequests known;
  std::uint64_t batches = 0;  // since the checkpoint
  bool is_cut = false, is_checkpoint = false;
  while (!is_cut && known.done.size() < 40) {
    is_checkpoint = dice() % 4 == 0;
    if (is_checkpoint) {
      is_cut = !f.log->checkpoint(0, known);
      if (!is_cut) batches = 0;
      continue;
    }
    const std::string data(dice() % 3000, 'x');
    for (int i = 0; i < 2; ++i)
      f.log->add({FileId(1), known.done.size(), 4096, std::as_bytes(std::span(data))},
                 f.log->last_number() + 1 + static_cast<std::uint64_t>(i));
    f.log->close_batch({{7, known.done.size() + 1}});
    is_cut = !f.log->write_batch();
    f.log->end_batch(!is_cut);
    if (is_cut) break;
    known.done.push_back({7, known.done.size() + 1});
    ++batches;
  }
  f.disk->set_fault({});
  f.disk->crash(512, [&](std::uint64_t limit) { return dice() % limit; });
  f.storage = component::make_memory_storage(f.disk);
  const auto seen = f.open();
  INFO("call " << failing << ", seed " << seed);
  const auto& done = f.log->found().done;
  REQUIRE(done.size() >= known.done.size());
  REQUIRE(done.size() <= known.done.size() + (is_cut && !is_checkpoint ? 1 : 0));
  for (std::size_t i = 0; i < done.size(); ++i) CHECK(done[i] == RequestKey{7, i + 1});
  const std::uint64_t more = done.size() - known.done.size();
  CHECK((seen.size() == 2 * (batches + more) || (is_checkpoint && seen.empty())));
}

}  // namespace

TEST_CASE("after any power cut a request is known if, and only if, all that it wrote is there") {
  for (unsigned failing = 0; failing < 60; ++failing)
    for (std::uint64_t seed = 0; seed < 8; ++seed) check_cut(failing, seed);
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
      f.fail_call(failing, calls);
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
  f.forge<std::uint32_t>(0, kHeadBytes, kVersionAt, kVersion + 1);
  CHECK(f.open_code() == Code::kVersion);
  CHECK(f.open_code() == Code::kVersion);
}

TEST_CASE("a log with entries but no head that is whole is damaged, not empty") {
  Fixture f;
  f.open();
  f.add(1, 1, "one");
  f.disk->flip_bit(path_of(1), 20, 1);
  CHECK(f.open_code() == Code::kCorrupt);
}

TEST_CASE("a head is that of the other file's round only in the other file") {
  Fixture f;
  f.open();
  f.forge<std::uint64_t>(0, kHeadBytes, 16, 4);
  f.add(1, 1, "one");
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
  CHECK(changed(kNumberAt, 0) == 0);
  CHECK(changed(kNumberAt, 2) == 0);  // not that of the batch's end
  CHECK(changed(kChainAt, 12345) == 0);
  CHECK(changed(kBytesAt, 1000) == 0);        // longer than the log
  CHECK(changed(kBytesAt, UINT64_MAX) == 0);  // than any entry may be
}

TEST_CASE("an entry that cannot be replayed ends the opening with why") {
  Fixture f;
  f.open();
  f.add(1, 1, "one");
  RedoLog log(*f.storage, kFolder, 1u << 20);
  const auto opened =
      log.open([](const LogEntry&, std::uint64_t) -> Result<bool> { return fail(Code::kNoSpace, "full"); });
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
    f.log->close_batch({{7, 1}});
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
  f.power_cut();
  CHECK(f.open().size() == 1);
  CHECK(f.log->found().done.empty());
}

TEST_CASE("an entry of requests that no program writes is damage") {
  CHECK(!lfs::decode_requests({}));
  CHECK(!lfs::decode_requests(std::vector<std::byte>(7)));
  CHECK(!lfs::decode_requests(std::vector<std::byte>(8 + 15)));
  auto one = lfs::encode_requests({{{1, 2}}, {}});
  CHECK(lfs::decode_requests(one)->forgotten == std::vector<RequestKey>{{1, 2}});
  one[0] = std::byte{2};  // more are forgotten than there are
  CHECK(!lfs::decode_requests(one));
}

// ---- redo.log of earlier releases ----

namespace {

constexpr const char* kOlderPath = "/log/redo.log";

struct OlderFixture : Fixture {
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> out;
    last = lfs::replay_older_log(*storage, kOlderPath, [&](const LogEntry&, std::uint64_t number) -> Result<bool> {
      out.push_back(number);
      return true;
    });
    return out;
  }
  Result<std::uint64_t> last = 0;
};

}  // namespace

TEST_CASE("the log of an earlier release is read to its last whole entry") {
  OlderFixture f;
  CHECK(f.numbers().empty());  // there is none
  CHECK(f.last == 0u);
  OlderLog older(*f.storage, kOlderPath);
  CHECK(f.numbers().empty());  // never finished being made
  CHECK(f.last == 0u);
  older.head(3, 9);
  older.entry(10, "one");
  older.head(4, 20);
  CHECK(f.numbers().empty());
  CHECK(f.last == 20u);
  older.entry(21, "one");
  older.entry(25, "two");
  CHECK(f.numbers() == std::vector<std::uint64_t>{21, 25});
  CHECK(f.last == 25u);
  f.disk->flip_bit(kOlderPath, older.end() - 6, 1);
  CHECK(f.numbers() == std::vector<std::uint64_t>{21});
}

TEST_CASE("the log of an earlier release that has entries, but no head, is damaged") {
  OlderFixture f;
  OlderLog older(*f.storage, kOlderPath);
  older.head(1, 0);
  older.entry(1, "one");
  f.disk->flip_bit(kOlderPath, OlderLog::kHeadBytes + 20, 1);
  f.numbers();
  REQUIRE(!f.last);
  CHECK(f.last.error().code == Code::kCorrupt);
}
