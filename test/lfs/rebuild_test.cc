// An LFS with an empty disk, or with an old one, gets what it lacks. Five others; the PIF Server is faked for all.
#include "rebuilding.h"

namespace pif::lfs::test {
namespace {

constexpr kv::Table kComponents = 0;  // of the catalogue

void lose_and_rebuild(Bevies& b, Rebuilding& r, sim::Actor& self, LfsIndex lost) {
  const auto before = b.state(lost);
  r.note_file();
  r.lose_disk();
  REQUIRE_OK(r.ask());
  const auto done = r.await(self, {wire::kRebuilt});
  CHECK(done.failed_count() == 0);
  CHECK(done.files() == 1);
  CHECK(r.server.words == std::vector<std::uint32_t>{wire::kViewReturning, wire::kViewMember});
  r.require_same(before);
}

TEST_CASE("a lost component comes back as it was") {
  const auto length = GENERATE(kShort, kLong);
  const auto count = GENERATE(7, 100, 333);
  const auto lost = GENERATE(LfsIndex{0}, LfsIndex{1}, LfsIndex{4});
  with_lost(Format::fixed(length), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    auto records = make_records(static_cast<std::size_t>(count), length, 1);
    records.back().resize(17);
    REQUIRE_OK(b.put(records));
    lose_and_rebuild(b, r, self, lost);
  });
}

TEST_CASE("a lost component of variable records comes back as it was") {
  const auto lost = GENERATE(LfsIndex{0}, LfsIndex{5});
  with_lost(Format::variable(), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_variable(500, 3)));
    lose_and_rebuild(b, r, self, lost);
  });
}

TEST_CASE("what was appended comes back, and more can be appended") {
  with_lost(Format::fixed(kShort), 4, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(10, kShort, 1)));
    for (unsigned i = 0; i < 12; ++i) REQUIRE_OK(b.append(make_records(i * 9 + 1, kShort, i + 2)));
    r.note_file({1, kShort}, b.file.id);  // all that the directory knows
    r.lose_disk();
    REQUIRE_OK(r.ask());
    (void)r.await(self, {wire::kRebuilt});
    b.require_all_rebuilt();
    REQUIRE_OK(b.append(make_records(50, kShort, 99)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("what is not back yet is not taken for what never was") {
  with_lost(Format::fixed(kShort), 0, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    r.note_file();
    r.lose_disk();
    (void)self.pause(std::chrono::seconds(3));
    CHECK(r.status().state() == wire::kRebuildWaits);
    CHECK(r.status().files_total() == 1);
    CHECK(b.reserve(1, kShort).error().code == Code::kUnavailable);
    auto packet = r.peer().request(b.file.id, kMayRead);
    packet.envelope.mutable_length()->set_file(b.file.id);
    CHECK(r.peer().call(std::move(packet)).error().code == Code::kUnavailable);
    REQUIRE_OK(r.ask());
    (void)r.await(self, {wire::kRebuilt});
    (void)self.pause(std::chrono::seconds(3));  // the others hear of it
    REQUIRE_OK(b.append(make_records(5, kShort, 9)));
    b.require_all_rebuilt();
  });
}

TEST_CASE("what cannot be rebuilt is told of, and tried again") {
  with_lost(Format::fixed(kShort), 1, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    const auto before = b.state(1);
    r.note_file();
    b.nodes[3]->kill();
    r.server.silent = 2;
    r.lose_disk();
    REQUIRE_OK(r.ask());
    const auto paused = r.await(self, {wire::kRebuildPauses});
    CHECK(paused.failed_count() == 1);
    REQUIRE(paused.failed_size() == 1);
    CHECK(paused.failed(0).path() == "/7");
    CHECK(paused.failed(0).error().text().find("lfs3") != std::string::npos);
    b.nodes[3]->start();
    REQUIRE_OK(r.ask());
    (void)r.await(self, {wire::kRebuilt});
    r.require_same(before);
  });
}

TEST_CASE("a crash in the middle leaves nothing half made") {
  const auto at = GENERATE(1, 5, 9, 12, 15, 20, 30);
  with_lost(Format::fixed(kShort), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(200, kShort, 1)));
    const auto before = b.state(2);
    r.note_file();
    r.lose_disk();
    (void)self.pause(std::chrono::seconds(2));
    int calls = 0;
    r.x().disk->set_fault([&](std::string_view call, std::string_view) {
      const bool counts = call == "write" || call == "sync" || call == "sync_folder" || call == "open";
      return counts && ++calls >= at ? Code::kIo : Code::kOk;
    });
    REQUIRE_OK(r.ask());
    (void)self.pause(std::chrono::milliseconds(500));
    r.x().crash();
    REQUIRE(r.x().check()->damages.empty());
    r.x().start();
    (void)r.ask();  // if there is still something to do: where it has a component it went on by itself
    (void)r.await(self, {wire::kRebuilt});
    r.require_same(before);
  });
}

// With the call-th call of its disk and catalogue failing. Returns whether there was one.
bool rebuilds_with_failure(std::uint64_t call) {
  bool failed = false;
  with_lost(Format::fixed(kShort), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(60, kShort, 1)));
    REQUIRE_OK(b.append(make_records(9, kShort, 2)));
    r.note_file();
    r.lose_disk();
    (void)self.pause(std::chrono::seconds(2));
    Node& x = r.x();
    x.disk->set_fault([&](std::string_view what, std::string_view path) { return x.faults->ask(what, path); });
    x.faults->fail_at(call, sim::Fault::kIoError, false);
    (void)r.ask();
    (void)self.pause(std::chrono::seconds(10));
    failed = x.faults->has_failed();
    INFO("call " << call << ": " << x.faults->failed_call());
    x.faults->heal();
    x.disk->set_fault({});
    if (r.status().state() != wire::kRebuilt) {  // what failed once is not trusted before a start
      x.crash();
      REQUIRE(x.check()->damages.empty());
      x.start();
      (void)r.ask();
    }
    (void)r.await(self, {wire::kRebuilt});
    b.require_all_rebuilt();
    b.require_clean();
  });
  return failed;
}

TEST_CASE("whichever call fails while an LFS is rebuilt, it is rebuilt in the end") {
  std::uint64_t call = 0;
  while (rebuilds_with_failure(call)) ++call;
  CHECK(call > 0);
}

TEST_CASE("a component whose entry in the catalogue cannot be read is made anew by a scrub, and appended to") {
  const auto hurt = GENERATE(LfsIndex{0}, LfsIndex{1}, LfsIndex{3});  // the sequencer, another one, the deputy
  with_lost(Format::fixed(kShort), hurt, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    for (unsigned i = 0; i < 3; ++i) REQUIRE_OK(b.append(make_records(9, kShort, i + 2)));
    r.note_file({1, kShort}, b.file.id);  // all that the directory knows
    r.server.set_state(r.x().id(), wire::kViewMember);
    const auto before = b.state(hurt);
    r.x().kill();
    const auto store = kv::open_memory(r.x().catalogue);
    auto change = store->write();
    REQUIRE_OK(change);
    REQUIRE_OK((*change)->put(kComponents, kv::key_u64(b.file.id), "rotten"));
    REQUIRE_OK((*change)->commit());
    r.x().start();
    (void)self.pause(std::chrono::seconds(3));
    CHECK(code_of(r.peer().read(b.file.id, 0, 1)) == Code::kCorrupt);
    auto packet = r.peer().request(0, kMayManage);
    packet.envelope.mutable_scrub();
    REQUIRE_OK(r.peer().call(std::move(packet)));
    (void)self.pause(std::chrono::seconds(10));
    packet = r.peer().request(0, kMayManage);
    packet.envelope.mutable_scrub_status();
    const auto scrubbed = r.peer().call(std::move(packet));
    REQUIRE_OK(scrubbed);
    CHECK(scrubbed->envelope.scrub_status_reply().found() == 1);
    CHECK(scrubbed->envelope.scrub_status_reply().repaired() == 1);
    r.require_same(before);
    REQUIRE_OK(b.append(make_records(20, kShort, 9)));
    b.require_all_rebuilt();
    r.x().crash();
    r.x().start();
    (void)self.pause(std::chrono::seconds(3));
    REQUIRE_OK(b.append(make_records(5, kShort, 10)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("a file that is removed meanwhile is no failure") {
  with_lost(Format::fixed(kShort), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(200, kShort, 1)));
    r.note_file();
    r.note_file({100, 100 * kShort}, 99);  // nobody has it
    r.lose_disk();
    REQUIRE_OK(r.ask());
    (void)r.await(self, {wire::kRebuildPauses});
    r.server.files.pop_back();
    (void)r.await(self, {wire::kRebuilt});
    b.require_all_rebuilt();
  });
}

TEST_CASE("a node that lost nothing is a member at once, and has nothing to rebuild a minute later") {
  with_lost(Format::fixed(kShort), 2, [&](Bevies&, Rebuilding& r, sim::Actor& self) {
    r.lose_disk();
    (void)r.await(self, {wire::kRebuilt});
    CHECK(r.ask().has_value());  // who asked came a moment too late
    (void)self.pause(std::chrono::minutes(2));
    const auto refused = r.ask();
    REQUIRE(!refused);
    CHECK(refused.error().code == Code::kInvalid);
    CHECK(refused.error().text.find("nothing to rebuild") != std::string::npos);
  });
}

TEST_CASE("a rate is kept to") {
  with_lost(Format::fixed(kLong), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(600, kLong, 1)));  // a MB of rows here, half as much parity
    r.note_file();
    r.lose_disk();
    REQUIRE_OK(r.ask(100'000));
    (void)self.pause(std::chrono::seconds(5));
    CHECK(r.status().state() == wire::kRebuilding);
    (void)r.await(self, {wire::kRebuilt});
    const auto done = r.status();
    CHECK(done.elapsed_ms() > 8000);
    CHECK(done.elapsed_ms() < 40000);
  });
}

TEST_CASE("a rate that is lifted holds nothing up any more") {
  with_lost(Format::fixed(kLong), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(600, kLong, 1)));
    r.note_file();
    r.lose_disk();
    REQUIRE_OK(r.ask(1000));  // for hours
    (void)self.pause(std::chrono::seconds(3));
    CHECK(r.status().state() == wire::kRebuilding);
    REQUIRE_OK(r.ask());
    (void)r.await(self, {wire::kRebuilt});
    CHECK(r.status().elapsed_ms() < 20000);
  });
}

// ---- one that was away, with what it had ----

TEST_CASE("rows that were appended without an LFS are fetched behind its own, and their parity is made") {
  const auto lost = GENERATE(LfsIndex{0}, LfsIndex{1}, LfsIndex{3}, LfsIndex{5});  // sequencer, deputy, others
  const auto count = GENERATE(3, 40, 400);
  with_lost(Format::fixed(kShort), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(50, kShort, 1)));
    r.note_file();
    r.save();
    REQUIRE_OK(b.append(make_records(static_cast<std::size_t>(count), kShort, 2)));
    REQUIRE_OK(b.append(make_records(7, kShort, 3)));
    const auto before = b.state(lost);
    r.come_back();
    r.require_catches_up(self, before);
    (void)self.pause(std::chrono::seconds(3));  // the others hear of it
    REQUIRE_OK(b.append(make_records(30, kShort, 4)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("the same of variable records") {
  const auto lost = GENERATE(LfsIndex{0}, LfsIndex{4});
  with_lost(Format::variable(), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_variable(300, 3)));
    r.note_file();
    r.save();
    for (unsigned i = 0; i < 8; ++i) REQUIRE_OK(b.append(make_variable(60, i + 10)));
    const auto before = b.state(lost);
    r.come_back();
    r.require_catches_up(self, before);
    (void)self.pause(std::chrono::seconds(3));
    REQUIRE_OK(b.append(make_variable(20, 99)));
    b.require_all_rebuilt();
  });
}

TEST_CASE("a short last record that was filled up meanwhile comes out whole, as what follows it") {
  const LfsIndex lost = parity::Layout::make(6, {3, 3})->locate(19).lfs;
  const auto bytes = GENERATE(250u, 500u);
  with_lost(Format::fixed(kShort), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    auto records = make_records(20, kShort, 1);
    const std::string last = records.back();
    records.back().resize(100);
    REQUIRE_OK(b.put(records));
    r.note_file();
    r.save();
    const auto grant = b.reserve(0, bytes - 100, true);
    REQUIRE_OK(grant);
    REQUIRE_OK(b.append_rows(lost, *grant, b.layout.locate(19).row, {last.substr(100, bytes - 100)}, 100));
    b.records.back() = last.substr(0, bytes);
    REQUIRE_OK(b.cover_all(*grant, 19));
    REQUIRE_OK(b.done(*grant));
    if (bytes == kShort) REQUIRE_OK(b.append(make_records(20, kShort, 2)));
    const auto before = b.state(lost);
    r.come_back();
    r.require_catches_up(self, before);
  });
}

TEST_CASE("rows that were durable here, never published, and written anew without it, are replaced") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const auto lost = GENERATE(LfsIndex{1}, LfsIndex{4});
  with_lost(format, lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    const auto make = [&](std::size_t count, unsigned seed) { return make_for(format, count, seed); };
    REQUIRE_OK(b.put(make(100, 1)));
    r.note_file();
    REQUIRE_OK(b.append(make(30, 2)));  // published, though this LFS does not know that
    const auto grant = b.begin_append(make(40, 3));
    REQUIRE_OK(grant);
    r.save();
    REQUIRE_OK(b.cancel(*grant));
    b.records.resize(130);
    REQUIRE_OK(b.append(make(60, 4)));
    const auto before = b.state(lost);
    r.come_back();
    r.require_catches_up(self, before);
  });
}

TEST_CASE("an LFS that missed nothing begins by itself, moves nothing, and is a member soon") {
  const auto lost = GENERATE(LfsIndex{0}, LfsIndex{2}, LfsIndex{3});
  with_lost(Format::fixed(kShort), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    r.note_file();
    const auto before = b.state(lost);
    r.save();
    r.come_back();
    const auto done = r.require_catches_up(self, before);
    CHECK(done.bytes_now() == 0);
    CHECK(b.state(lost).SerializeAsString() == before.SerializeAsString());
  });
}

TEST_CASE("files that were made while it was away come whole") {
  with_lost(Format::fixed(kShort), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(10, kShort, 1)));
    r.note_file();
    r.save();
    b.file.id = 8;
    REQUIRE_OK(b.put(make_records(120, kShort, 2)));
    r.note_file();
    const auto before = b.state(2);
    r.come_back();
    r.require_catches_up(self, before);
  });
}

TEST_CASE("a crash while it catches up leaves what it had") {
  const auto at = GENERATE(1, 3, 5, 7, 9, 12, 16, 20);
  with_lost(Format::fixed(kShort), 2, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(50, kShort, 1)));
    r.note_file();
    r.save();
    for (unsigned i = 0; i < 4; ++i) REQUIRE_OK(b.append(make_records(30, kShort, i + 2)));
    const auto before = b.state(2);
    r.come_back();
    int calls = 0;
    r.x().disk->set_fault([&](std::string_view call, std::string_view path) {
      const bool counts = call == "write" || call == "sync" || call == "sync_folder";
      return counts && path.find("/data/") != std::string_view::npos && ++calls >= at ? Code::kIo : Code::kOk;
    });
    (void)self.pause(std::chrono::seconds(4));
    r.x().crash();
    REQUIRE(r.x().check()->damages.empty());
    r.x().start();
    (void)r.await(self, {wire::kRebuilt});
    const auto after = b.state(2);
    CHECK(after.rows() == before.rows());
    CHECK(after.data_tail_sum() == before.data_tail_sum());
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("what is behind is not shown, and not taken for what the file is") {
  with_lost(Format::fixed(kShort), 0, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    r.note_file();
    r.save();
    REQUIRE_OK(b.append(make_records(100, kShort, 2)));
    r.server.silent = 1000000;  // it never learns which files those are
    r.come_back();
    (void)self.pause(std::chrono::seconds(3));
    auto packet = r.peer().request(b.file.id, kMayRead);
    packet.envelope.mutable_length()->set_file(b.file.id);
    CHECK(r.peer().call(std::move(packet)).error().code == Code::kUnavailable);
    CHECK(b.reserve(1, kShort).error().code == Code::kUnavailable);
    r.server.silent = 0;
    (void)r.await(self, {wire::kRebuilt});
    REQUIRE_OK(b.append(make_records(5, kShort, 9)));
    b.require_all_rebuilt();
  });
}

}  // namespace
}  // namespace pif::lfs::test
