// LFSs look at what they have of files with parity, and repair it. Damage is done behind their backs.
#include "fake_server.h"
#include "pif/base/checksum.h"
#include "pif/component/parity.h"
#include "scrubbing.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kShort = 500;  // eight records to a chunk, and to a page's stretch
constexpr LfsIndex kHurt = 1;

void with_file(const Format& format, std::size_t count, const std::function<void(Bevies&, Scrubbing&)>& body) {
  with_bevies(format, [&](Bevies& b, sim::Actor& self) {
    REQUIRE_OK(b.put(make_for(format, count, 1)));
    Scrubbing scrubbing(b, self);
    body(b, scrubbing);
  });
}

TEST_CASE("nothing is found where nothing is wrong") {
  const auto format = GENERATE(Format::fixed(kShort), Format::fixed(5000), Format::variable());
  const auto count = GENERATE(1, 7, 200);
  with_file(format, static_cast<std::size_t>(count), [&](Bevies&, Scrubbing& s) {
    CHECK(s.pass().files > 0);
    s.require_whole();
  });
}

TEST_CASE("a flipped bit is repaired, wherever it is") {
  const auto place = GENERATE(std::pair(".dat", 700), std::pair(".dat", 32 * kShort + 5), std::pair(".sum", 3),
                              std::pair(".sum", 8), std::pair(".par", 5), std::pair(".psum", 1), std::pair(".psum", 9),
                              std::pair(".psum", 17), std::pair(".pap", 60), std::pair(".pap", 8));
  with_file(Format::fixed(kShort), 200, [&](Bevies&, Scrubbing& s) {
    INFO(place.first << " " << place.second);
    s.flip(kHurt, place.first, static_cast<std::uint64_t>(place.second));
    s.require_repaired();
  });
}

TEST_CASE("a file of a component that is missing is made anew") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const std::string ending = GENERATE(".dat", ".sum", ".idx", ".par", ".psum");
  if (format.is_fixed() && ending == ".idx") return;
  with_file(format, 400, [&](Bevies& b, Scrubbing& s) {
    INFO(ending);
    Node& node = *b.nodes[kHurt];
    node.kill();
    REQUIRE_OK(component::make_memory_storage(node.disk)->remove(s.stem(kHurt) + ending));
    node.start();
    const Totals found = s.pass();
    CHECK(found.found > 0);
    CHECK(found.repaired == found.found);
    node.crash();
    node.start();
    s.require_whole();
  });
}

TEST_CASE("rows that are appended after a missing file was made anew are in that one") {
  with_file(Format::fixed(kShort), 100, [&](Bevies& b, Scrubbing& s) {
    Node& node = *b.nodes[kHurt];
    REQUIRE_OK(b.append(make_records(40, kShort, 2)));  // the LFS has the files open from now on
    REQUIRE_OK(component::make_memory_storage(node.disk)->remove(s.stem(kHurt) + ".dat"));
    const Totals found = s.pass();
    CHECK(found.found > 0);
    CHECK(found.repaired == found.found);
    REQUIRE_OK(b.append(make_records(40, kShort, 3)));
    node.restart();
    s.require_whole();
  });
}

TEST_CASE("an entry of the catalogue whose key is no id of a file is told of, once") {
  const bool are_many = GENERATE(false, true);  // more than are looked at in one turn of the loop
  with_file(Format::fixed(kShort), 100, [&](Bevies& b, Scrubbing& s) {
    const std::size_t count = are_many ? 300 : 1;
    const auto store = kv::open_memory(b.nodes[kHurt]->catalogue);
    auto change = store->write();
    REQUIRE_OK(change);
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE_OK((*change)->put(kv::Table{0}, "no id" + std::to_string(i), "rotten"));
    REQUIRE_OK((*change)->commit());
    s.flip(kHurt, ".dat", 10);
    s.ask(kHurt);
    const auto done = s.await(kHurt);
    CHECK(done.found() == count + 1);
    CHECK(done.repaired() == 1);
    CHECK(done.files() == 1);
  });
}

TEST_CASE("a flipped bit of variable records is repaired") {
  const auto place = GENERATE(std::pair(".dat", 700), std::pair(".dat", 4096), std::pair(".idx", 100),
                              std::pair(".par", 300), std::pair(".sum", 3));
  with_file(Format::variable(), 500, [&](Bevies&, Scrubbing& s) {
    INFO(place.first << " " << place.second);
    s.flip(kHurt, place.first, static_cast<std::uint64_t>(place.second));
    s.require_repaired();
  });
}

TEST_CASE("a chunk that is old together with its sum is repaired") {
  const auto chunk = GENERATE(0, 1, 3);
  with_file(Format::fixed(kShort), 200, [&](Bevies&, Scrubbing& s) {
    s.make_stale(kHurt, static_cast<std::uint64_t>(chunk));
    s.require_repaired();
  });
}

TEST_CASE("rows that are cut off come back") {
  with_file(Format::fixed(kShort), 200, [&](Bevies& b, Scrubbing& s) {
    b.nodes[kHurt]->disk->edit(s.stem(kHurt) + ".dat", [](std::vector<std::byte>& bytes) { bytes.resize(4100); });
    const Totals first = s.pass();
    CHECK(first.found > 1);
    CHECK(first.repaired == first.found);
    s.require_whole();
  });
}

TEST_CASE("two damages in one group are reported, and left alone") {
  with_file(Format::fixed(kShort), 200, [&](Bevies& b, Scrubbing& s) {
    const LfsIndex keeper = b.layout.parity_of({kHurt, 0}).lfs;
    s.flip(kHurt, ".dat", 10);
    s.flip(keeper, ".par", 5);
    for (int i = 0; i < 2; ++i) {
      const Totals found = s.pass();
      INFO(found.texts);
      CHECK(found.found == 2);
      CHECK(found.repaired == 0);
    }
    s.flip(keeper, ".par", 5);
    s.require_repaired();
  });
}

TEST_CASE("who only looks repairs nothing") {
  with_file(Format::fixed(kShort), 200, [&](Bevies&, Scrubbing& s) {
    s.flip(kHurt, ".dat", 10);
    for (int i = 0; i < 2; ++i) {
      const Totals found = s.pass(true);
      INFO(found.texts);
      CHECK(found.found == 1);
      CHECK(found.repaired == 0);
    }
    CHECK(s.status(kHurt).ended() > 0);
    s.require_repaired();
  });
}

TEST_CASE("what was appended is looked at, too") {
  with_file(Format::fixed(kShort), 100, [&](Bevies& b, Scrubbing& s) {
    for (unsigned i = 0; i < 8; ++i) REQUIRE_OK(b.append(make_records(i * 9 + 1, kShort, i + 2)));
    s.require_whole();
    s.flip(kHurt, ".dat", 4100);
    s.require_repaired();
    REQUIRE_OK(b.append(make_records(33, kShort, 99)));
    s.require_whole();
  });
}

// The copy of a record that counts, as its keeper has it.
component::Frame newest_frame(Bevies& b, Scrubbing& s, RecordNumber record) {
  const LfsIndex keeper = b.layout.parity_of(b.layout.locate(record)).lfs;
  const auto storage = component::make_memory_storage(b.nodes[keeper]->disk);
  auto files = component::open_parity(*storage, s.stem(keeper), component::OpenMode::kRead);
  REQUIRE_OK(files);
  const auto index = component::scan_frames(FileId(b.file.id), *files, 0);
  REQUIRE_OK(index);
  const component::Frame* const frame = index->find(record);
  REQUIRE(frame != nullptr);
  return *frame;
}

TEST_CASE("a copy that goes bad is not replaced by one of an append that was cancelled") {
  with_file(Format::fixed(kShort), 100, [&](Bevies& b, Scrubbing& s) {
    for (unsigned i = 0; i < 2; ++i) {  // the second one moves the base behind what the first one has cancelled
      const std::size_t published = b.records.size();
      const auto grant = b.begin_append(make_records(12, kShort, 10 + i));
      REQUIRE_OK(grant);
      REQUIRE_OK(b.cancel(*grant));
      b.records.resize(published);
      REQUIRE_OK(b.append(make_records(12, kShort, 20 + i)));
    }
    const RecordNumber record = 103;
    const LfsIndex keeper = b.layout.parity_of(b.layout.locate(record)).lfs;
    s.flip(keeper, ".pap", newest_frame(b, s, record).offset + 7);
    b.nodes[keeper]->restart();
    s.require_repaired();
  });
}

TEST_CASE("copies that come to lie elsewhere are read from there after a scrub") {
  with_file(Format::fixed(kShort), 100, [&](Bevies& b, Scrubbing& s) {
    b.require_all_rebuilt();  // from now on keepers know where their copies are
    const LfsIndex keeper = b.layout.parity_of(b.layout.locate(99)).lfs;
    const std::uint64_t from = newest_frame(b, s, 99).offset - component::kFrameHeaderBytes;
    const std::uint64_t bytes = component::frame_bytes(kShort);
    b.nodes[keeper]->disk->edit(s.stem(keeper) + ".pap", [&](std::vector<std::byte>& all) {
      const auto frame = all.begin() + static_cast<std::ptrdiff_t>(from);
      const std::vector<std::byte> moved(frame, frame + static_cast<std::ptrdiff_t>(bytes));
      std::fill_n(frame, bytes, std::byte{0});
      all.insert(all.end(), moved.begin(), moved.end());
    });
    (void)s.pass();
    s.require_whole();
  });
}

// Rows that nobody goes on with, behind what is published; some share a chunk with published rows.
constexpr std::size_t kCancelled = 66;

void cancel_some(Bevies& b) {
  const std::size_t published = b.records.size();
  const auto grant = b.begin_append(make_for(b.file.format, kCancelled, 10));
  REQUIRE_OK(grant);
  REQUIRE_OK(b.cancel(*grant));
  b.records.resize(published);
}

// Published bytes of .dat.
std::uint64_t published_bytes(const Bevies& b, LfsIndex lfs) {
  std::uint64_t bytes = 0;
  for (std::size_t n = 0; n < b.records.size(); ++n)
    if (b.layout.locate(n).lfs == lfs) bytes += b.records[n].size();
  return bytes;
}

TEST_CASE("rows of a cancelled append that go bad are forgotten, and those that share their chunk are rebuilt") {
  const LfsIndex hurt = GENERATE(0, 1, 3);  // the sequencer, another one, the deputy
  const int where = GENERATE(range(0, 5));
  with_file(Format::fixed(kShort), 108, [&](Bevies& b, Scrubbing& s) {
    INFO("LFS " << hurt << ", " << where);
    const std::uint64_t end = published_bytes(b, hurt);
    const std::uint64_t shared = end / (8 * kShort) * (8 * kShort);
    REQUIRE(end > shared + 10);
    cancel_some(b);
    REQUIRE(b.state(hurt).bytes() > shared + 8 * kShort);
    if (where == 0) s.flip(hurt, ".dat", end - 10);
    if (where == 1) s.flip(hurt, ".dat", end + 10);
    if (where == 2) s.flip(hurt, ".dat", b.state(hurt).bytes() - 1);
    if (where == 3) s.flip(hurt, ".sum", shared / (8 * kShort) * 16 + 1);
    if (where == 4) s.flip(hurt, ".dat", 10);
    const std::uint64_t before = b.state(hurt).bytes();
    s.require_repaired();
    CHECK(b.state(hurt).bytes() == (where == 4 ? before : end));
    REQUIRE_OK(b.append(make_records(40, kShort, 20)));
    s.require_whole();
  });
}

TEST_CASE("rows of a cancelled append of variable records that go bad are forgotten") {
  const bool is_index = GENERATE(false, true);
  const int place = GENERATE(0, 1, 2);
  with_file(Format::variable(), 500, [&](Bevies& b, Scrubbing& s) {
    cancel_some(b);
    const std::uint64_t rows = b.layout.rows(kHurt, b.records.size());
    const std::uint64_t end = is_index ? rows * 8 : published_bytes(b, kHurt);
    const std::uint64_t all = is_index ? b.state(kHurt).rows() * 8 : b.state(kHurt).bytes();
    REQUIRE(all > end + 8);
    s.flip(kHurt, is_index ? ".idx" : ".dat", place == 0 ? end - 3 : place == 1 ? end + 3 : all - 1);
    const Totals first = s.pass();
    INFO(first.texts);
    CHECK(first.found >= 1);
    CHECK(first.repaired == first.found);
    s.require_whole();
    REQUIRE_OK(b.append(make_variable(90, 20)));
    s.require_whole();
  });
}

TEST_CASE("rows of an append that is under way are not forgotten") {
  const LfsIndex hurt = GENERATE(0, 1, 3);
  const bool is_of_append = GENERATE(false, true);
  with_file(Format::fixed(kShort), 108, [&](Bevies& b, Scrubbing& s) {
    const std::uint64_t end = published_bytes(b, hurt);
    const auto grant = b.begin_append(make_records(kCancelled, kShort, 10));
    REQUIRE_OK(grant);
    s.flip(hurt, ".dat", is_of_append ? end + 10 : end - 10);
    s.ask(hurt);
    for (int i = 0; i < 30; ++i) (void)s.status(hurt);  // it has got to that chunk, and waits
    CHECK(s.status(hurt).is_running());
    REQUIRE_OK(b.done(*grant));
    const auto done = s.await(hurt);
    CHECK(done.found() == 1);
    CHECK(done.repaired() == 1);
    s.require_whole();
  });
}

TEST_CASE("who only looks forgets nothing") {
  with_file(Format::fixed(kShort), 100, [&](Bevies& b, Scrubbing& s) {
    cancel_some(b);
    const std::uint64_t all = b.state(kHurt).bytes();
    s.flip(kHurt, ".dat", all - 1);
    CHECK(s.pass(true).found == 0);  // no row of the file
    CHECK(b.state(kHurt).bytes() == all);
    s.flip(kHurt, ".dat", published_bytes(b, kHurt) + 10);
    const Totals second = s.pass(true);
    CHECK(second.found == 1);
    CHECK(second.repaired == 0);
    CHECK(b.state(kHurt).bytes() == all);
  });
}

TEST_CASE("a file that is appended to meanwhile has no damage") {
  with_file(Format::fixed(kShort), 400, [&](Bevies& b, Scrubbing& s) {
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) s.ask(lfs, false, 20'000);
    for (unsigned i = 0; i < 30; ++i) REQUIRE_OK(b.append(make_records(i % 7 + 1, kShort, i + 2)));
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) {
      s.ask(lfs);  // faster
      CHECK(s.await(lfs).found() == 0);
    }
    s.require_whole();
  });
}

TEST_CASE("a restart keeps the last pass") {
  with_file(Format::fixed(kShort), 200, [&](Bevies& b, Scrubbing& s) {
    CHECK(s.status(kHurt).ended() == 0);
    s.flip(kHurt, ".dat", 10);
    CHECK(s.pass(true).found == 1);
    const auto before = s.status(kHurt);
    CHECK(before.ended() > 0);
    CHECK(before.began() > 0);
    b.nodes[kHurt]->restart();
    const auto after = s.status(kHurt);
    CHECK(after.ended() == before.ended());
    CHECK(after.began() == 0);
    CHECK(!after.is_running());
  });
}

TEST_CASE("without one LFS the others are looked at as far as possible") {
  with_file(Format::fixed(kShort), 200, [&](Bevies& b, Scrubbing& s) {
    b.nodes[3]->kill();  // has parity of rows of the one that is hurt
    s.flip(kHurt, ".sum", 3);
    s.ask(kHurt);
    const std::string lacks = s.lacks(kHurt);
    CHECK(s.status(kHurt).found() == 1);
    CHECK(lacks.find("lfs3") != std::string::npos);
    b.nodes[3]->start();
    (void)s.pass();
    s.require_whole();
  });
}

TEST_CASE("an LFS that is back before the end of a pass is compared with in that pass") {
  with_file(Format::fixed(kShort), 200, [&](Bevies& b, Scrubbing& s) {
    s.ask(kHurt);
    CHECK(s.lacks(kHurt).empty());  // there is a connection that can break
    b.nodes[3]->kill();
    s.ask(kHurt);
    (void)b.peers[0]->self().pause(std::chrono::seconds(1));
    CHECK(s.status(kHurt).is_running());
    b.nodes[3]->start();
    CHECK(s.lacks(kHurt).empty());
    CHECK(s.status(kHurt).files() == 1);
  });
}

TEST_CASE("a file that others have removed already is no lack, and goes, however often it is read") {
  const bool is_remembered = GENERATE(true, false);  // by others: kStaleFile, else kNotFound
  sim::World world(1);
  Bevies b(world, Format::fixed(kShort), "sim:server");
  FakeServer server;
  server.unknown = 2;  // committed
  world.spawn("server", [&](sim::Actor& self) { server.run(self, *b.nodes[0]); }, {0, {0}});
  world.spawn_main("client", [&](sim::Actor& self) {
    b.connect(self);
    REQUIRE_OK(b.put(make_records(200, kShort, 1)));
    Scrubbing s(b, self);
    (void)self.pause(std::chrono::seconds(1));
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs) {
      if (lfs == kHurt) continue;
      REQUIRE_OK(b.peers[lfs]->settle({}, {b.file.id}));
      if (!is_remembered) b.nodes[lfs]->restart();
    }
    (void)self.pause(std::chrono::seconds(2));
    SECTION("it was removed") {
      server.states[b.file.id] = 3;  // removed
      s.ask(kHurt);
      CHECK(s.lacks(kHurt).empty());
      CHECK(code_of(b.peers[kHurt]->read(b.file.id, 0, 1)) == Code::kStaleFile);
    }
    SECTION("it was not") {
      s.ask(kHurt);
      CHECK(!s.lacks(kHurt).empty());
      CHECK(code_of(b.peers[kHurt]->read(b.file.id, 0, 1)) == Code::kOk);
    }
    b.peers.clear();
  });
  world.run();
}

TEST_CASE("each LFS scrubs by itself, first some days after it was made, then each week") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor& self) {
    constexpr auto kDay = std::chrono::hours(24);
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    for (LfsIndex lfs = 0; lfs < Bevies::kWidth; ++lfs)
      if (lfs != kHurt) b.nodes[lfs]->kill();  // each second of two weeks is a step of each
    Scrubbing s(b, self);
    const auto ended_after = [&](std::chrono::hours time) {
      (void)self.pause(time);
      return s.await(kHurt).ended();
    };
    CHECK(ended_after(kDay - std::chrono::hours(1)) == 0);
    const auto first = ended_after(6 * kDay + std::chrono::hours(2));
    CHECK(first > 0);
    const auto second = ended_after(7 * kDay);
    CHECK(second - first >= 7 * 24 * 3600);
    CHECK(second - first < 7 * 24 * 3600 + 60);
    b.nodes[kHurt]->restart();  // which does not make it due
    CHECK(ended_after(std::chrono::hours(1)) == second);
  });
}

TEST_CASE("only who may manage the file system scrubs") {
  with_file(Format::fixed(kShort), 7, [&](Bevies& b, Scrubbing&) {
    auto packet = b.peers[0]->request(b.file.id, kMayRead | kMayWrite);
    packet.envelope.mutable_scrub();
    CHECK(code_of(b.peers[0]->call(std::move(packet))) == Code::kBadCapability);
  });
}

}  // namespace
}  // namespace pif::lfs::test
