// Each call of one LFS's disk and catalogue fails once while rows are gathered, covered, folded or rebuilt: what was
// acknowledged stays, and is rebuilt out of its parity; nothing is damaged; and afterwards all can be done.
#include "bevy.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kShort = 100;
constexpr std::uint32_t kLong = 9000;

struct Operation {
  const char* what;
  std::uint32_t record_length;
  std::function<void(Bevies&, sim::Actor&)> prepare;
  std::function<Status(Bevies&, LfsIndex, sim::Actor&)> run;
  std::function<std::uint64_t(Bevies&)> made;  // what it makes more of
};

// Sum over all LFSs.
template <typename Count>
std::uint64_t count(Bevies& b, const Count& count_of) {
  std::uint64_t sum = 0;
  for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) sum += count_of(b.state(lfs));
  return sum;
}

void require_readable(Bevies& b, std::size_t count) {
  for (std::size_t n = 0; n < count; n += 3) {
    const auto found = b.rebuilt(b.layout.locate(n));
    INFO("record " << n << (found ? "" : found.error().to_string()));
    REQUIRE(found);
    REQUIRE(*found == b.records[n]);
  }
}

// Written anew if its LFS lost it, as a client would.
void finish_creating(Bevies& b) {
  auto done = b.gather_all();
  if (!done) {
    ++b.file.id;
    done = b.write(b.records);
    if (done) done = b.gather_all();
  }
  REQUIRE_OK(done);
  REQUIRE_OK(b.settle());
}

Status append_some(Bevies& b, std::size_t count, unsigned seed) {
  return b.append(make_records(count, b.file.format.record_length, seed));
}

// Whether the records that were not acknowledged are there all the same: LFS 0 knows, once their range has lapsed.
void take_length(Bevies& b, std::size_t acknowledged, sim::Actor& self) {
  (void)self.pause(std::chrono::seconds(6));
  auto grant = b.reserve(1, b.file.format.record_length);
  REQUIRE_OK(grant);
  const std::size_t start = grant->start().records();
  REQUIRE((start == acknowledged || start == b.records.size()));
  b.records.resize(start);
  REQUIRE_OK(b.cancel(*grant));
}

Status rebuild_some(Bevies& b, LfsIndex keeper) {
  for (std::size_t n = 0; n < b.records.size(); ++n) {
    const Cell cell = b.layout.locate(n);
    if (b.layout.parity_of(cell).lfs != keeper) continue;
    PIF_TRY_VALUE(const std::string row, b.rebuilt(cell));
    if (row != b.records[n]) return fail(Code::kInternal, "other bytes than were written");
  }
  return {};
}

std::uint64_t copies(Bevies& b) {
  std::uint64_t bytes = 0;
  for (auto& node : b.nodes) bytes += node->disk->used();
  return bytes;
}
std::uint64_t covered(Bevies& b) {
  return count(b, [](const proto::ComponentState& state) { return static_cast<unsigned>(state.covered_size()); });
}
std::uint64_t folded(Bevies& b) {
  return count(b, [](const proto::ComponentState& state) { return state.pages(); });
}

void put_some(Bevies& b, std::size_t count) { REQUIRE_OK(b.put(make_records(count, b.file.format.record_length, 1))); }

const std::vector<Operation> kAppends = {
    {"cover by copies", kShort, [](Bevies& b, sim::Actor&) { put_some(b, 40); },
     [](Bevies& b, LfsIndex, sim::Actor&) { return append_some(b, 9, 5); }, copies},
    {"cover by pages", kLong, [](Bevies& b, sim::Actor&) { put_some(b, 10); },
     [](Bevies& b, LfsIndex, sim::Actor&) { return append_some(b, 40, 5); }, covered},
    {"fold", kLong,
     [](Bevies& b, sim::Actor&) {
       put_some(b, 10);
       for (unsigned i = 0; i < 3; ++i) REQUIRE_OK(append_some(b, 50, i + 2));
     },
     [](Bevies& b, LfsIndex, sim::Actor& self) {
       const Status done = append_some(b, 40, 50);
       (void)self.pause(std::chrono::seconds(1));
       return done;
     },
     folded},
};

// With the call-th call failing. Returns whether there was one.
bool appends_with_failure(const Operation& operation, LfsIndex hurt, std::uint64_t call) {
  bool failed = false;
  with_bevies(Format::fixed(operation.record_length), [&](Bevies& b, sim::Actor& self) {
    operation.prepare(b, self);
    const std::size_t before = b.records.size();
    const std::uint64_t made = operation.made(b);
    Node& node = *b.nodes[hurt];
    node.disk->set_fault([&](std::string_view what, std::string_view path) { return node.faults->ask(what, path); });
    node.faults->fail_at(call, sim::Fault::kIoError, false);
    const Status done = operation.run(b, hurt, self);
    failed = node.faults->has_failed();
    INFO(operation.what << " at LFS " << hurt << ", call " << call << ": " << node.faults->failed_call());
    CHECK((done || failed));
    node.faults->heal();
    node.disk->set_fault({});
    if (!failed) CHECK(operation.made(b) > made);
    node.crash();
    CHECK(node.check().value().damages.empty());
    node.start();
    take_length(b, done ? b.records.size() : before, self);
    require_readable(b, b.records.size());
    REQUIRE_OK(append_some(b, 5, 60));
    b.require_all_rebuilt();
    b.require_clean();
  });
  return failed;
}

bool gathers_with_failure(std::uint32_t record_length, std::uint64_t call) {
  bool failed = false;
  with_bevies(Format::fixed(record_length), [&](Bevies& b, sim::Actor&) {
    const LfsIndex hurt = 4;
    REQUIRE_OK(b.write(make_records(60, record_length, 1)));
    Node& node = *b.nodes[hurt];
    node.disk->set_fault([&](std::string_view what, std::string_view path) { return node.faults->ask(what, path); });
    node.faults->fail_at(call, sim::Fault::kIoError, false);
    const Status done = b.gather(hurt);
    failed = node.faults->has_failed();
    INFO("gather, call " << call << ": " << node.faults->failed_call());
    CHECK((done || failed));
    node.faults->heal();
    node.disk->set_fault({});
    finish_creating(b);
    b.require_all_rebuilt();
    for (auto& one : b.nodes) one->crash();
    b.require_clean();
    for (auto& one : b.nodes) one->start();
    b.require_all_rebuilt();
  });
  return failed;
}

bool rebuilds_with_failure(std::uint64_t call) {
  bool failed = false;
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    const LfsIndex hurt = 1;
    put_some(b, 60);
    REQUIRE_OK(append_some(b, 9, 5));
    Node& node = *b.nodes[hurt];
    node.crash();
    node.start();
    node.disk->set_fault([&](std::string_view what, std::string_view path) { return node.faults->ask(what, path); });
    node.faults->fail_at(call, sim::Fault::kIoError, false);
    const Status done = rebuild_some(b, hurt);
    failed = node.faults->has_failed();
    INFO("rebuilding, call " << call << ": " << node.faults->failed_call());
    CHECK((done || failed));
    node.faults->heal();
    node.disk->set_fault({});
    node.restart();
    b.require_all_rebuilt();
    b.require_clean();
  });
  return failed;
}

TEST_CASE("whichever call fails while an append is covered or folded, what is acknowledged has its parity") {
  for (const auto& operation : kAppends) {
    for (const LfsIndex hurt : {LfsIndex{0}, LfsIndex{1}, LfsIndex{3}}) {  // the sequencer, another one, the deputy
      std::uint64_t call = 0;
      while (appends_with_failure(operation, hurt, call)) ++call;
      INFO(operation.what << " at LFS " << hurt);
      CHECK(call > 5);
    }
  }
}

TEST_CASE("whichever call fails while a file is gathered, it is gathered again, or written again") {
  for (const std::uint32_t record_length : {kShort, kLong}) {
    std::uint64_t call = 0;
    while (gathers_with_failure(record_length, call)) ++call;
    CHECK(call > 0);
  }
}

TEST_CASE("whichever call fails while rows are rebuilt, they are right, or come the next time") {
  std::uint64_t call = 0;
  while (rebuilds_with_failure(call)) ++call;
  CHECK(call > 0);
}

}  // namespace
}  // namespace pif::lfs::test
