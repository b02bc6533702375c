// Two LFSs of a pair away, one after the other: what the second one needs the first for, and what it does not.
#include "rebuilding.h"

namespace pif::lfs::test {
namespace {

// X was away while file 7 was appended to, and file 8 was not. Then another one goes, and X comes back.
struct TwoAway {
  // It keeps parity of half of X's rows: copies of them while they are in frames. Neither a sequencer nor a deputy.
  static LfsIndex needed_by(const Bevies& b, LfsIndex lost) { return b.layout.keepers(lost).back(); }
  static void run(LfsIndex lost, std::optional<LfsIndex> dead,
                  const std::function<void(Bevies&, Rebuilding&, sim::Actor&)>& body) {
    with_lost(Format::fixed(kShort), lost, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
      b.file.id = 8;
      REQUIRE_OK(b.put(make_records(100, kShort, 8)));
      r.note_file();
      b.file.id = 7;
      REQUIRE_OK(b.put(make_records(50, kShort, 1)));
      r.note_file();
      for (auto& file : r.server.files) file.set_untouched(file.file() == 8);
      std::reverse(r.server.files.begin(), r.server.files.end());  // by id
      r.save();
      REQUIRE_OK(b.append(make_records(100, kShort, 2)));
      b.nodes[dead.value_or(needed_by(b, lost))]->kill();
      r.come_back();
      body(b, r, self);
    });
  }
};

Code read_first_row(Bevies& b, LfsIndex lfs, std::uint64_t file) {
  auto packet = b.peers[lfs]->request(file, kMayRead);
  packet.envelope.mutable_read()->set_file(file);
  packet.envelope.mutable_read()->set_count(1);
  const auto reply = b.peers[lfs]->call(std::move(packet));
  return reply ? Code::kOk : reply.error().code;
}

TEST_CASE("a file that cannot be restored holds up itself only: the LFS takes part, and serves the others") {
  const auto lost = GENERATE(LfsIndex{0}, LfsIndex{1}, LfsIndex{3});  // sequencer, another, deputy
  TwoAway::run(lost, {}, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    const auto paused = r.await(self, {wire::kRebuildPauses});
    REQUIRE(paused.failed_size() == 1);
    CHECK(paused.failed(0).file() == 7);
    CHECK(r.server.words == std::vector<std::uint32_t>{wire::kViewReturning, wire::kViewMember});
    CHECK(read_first_row(b, lost, 8) == Code::kOk);
    CHECK(read_first_row(b, lost, 7) == Code::kUnavailable);
    r.x().kill();  // it is durable
    r.x().start();
    (void)self.pause(std::chrono::seconds(2));
    CHECK(read_first_row(b, lost, 8) == Code::kOk);
    CHECK(read_first_row(b, lost, 7) == Code::kUnavailable);
    b.nodes[TwoAway::needed_by(b, lost)]->start();
    (void)r.await(self, {wire::kRebuilt});
    for (const auto& file : r.server.files) CHECK(file.lacking_size() == 0);
    CHECK(read_first_row(b, lost, 7) == Code::kOk);
    (void)self.pause(std::chrono::seconds(3));
    REQUIRE_OK(b.append(make_records(30, kShort, 4)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("what a person has given up of a file is waited for no more") {
  TwoAway::run(1, {}, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    (void)r.await(self, {wire::kRebuildPauses});
    for (auto& file : r.server.files) file.set_given_up(file.file() == 7);
    (void)r.await(self, {wire::kRebuilt});
    CHECK(read_first_row(b, 1, 7) == Code::kOk);  // what it has of it
    for (const auto& file : r.server.files) CHECK(file.lacking_size() == 0);
  });
}

TEST_CASE("one that has nothing of what is rebuilt, and keeps no parity of it, may be away") {
  TwoAway::run(1, 4, [](Bevies& b, Rebuilding& r, sim::Actor& self) {
    CHECK(r.await(self, {wire::kRebuilt, wire::kRebuildPauses}).failed_count() == 0);
    b.nodes[4]->start();
    (void)self.pause(std::chrono::seconds(3));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

// Y was away when more was published, in a newer generation. X, whose rows are in the same pages, is away now. So
// nobody can rebuild rows of Y, and nobody needs to: the pages say what they hash to.
void miss_newer_generation(const Format& format, const std::function<void(Bevies&, Rebuilding&)>& spoil,
                           const std::function<void(Bevies&, Rebuilding&, sim::Actor&)>& body) {
  constexpr LfsIndex kY = 1, kX = 2;  // neither the sequencer nor its deputy
  with_lost(format, kY, [&](Bevies& b, Rebuilding& r, sim::Actor& self) {
    REQUIRE_OK(b.put(make_for(format, 50, 1)));
    r.note_file();
    const std::size_t many = format == Format::fixed(kLong) ? 40 : 800;  // that make pages, and fit packets
    REQUIRE_OK(b.append(make_for(format, many, 2)));                     // Y does not know that it was published
    spoil(b, r);
    const auto cancelled = b.reserve(1, 1);
    REQUIRE_OK(cancelled);
    REQUIRE_OK(b.cancel(*cancelled));
    REQUIRE_OK(b.append(make_for(format, 7, 3)));
    (void)self.pause(std::chrono::seconds(1));  // frames of what is published become pages
    b.nodes[kX]->kill();
    r.come_back();
    body(b, r, self);
    b.nodes[kX]->start();
    (void)r.await(self, {wire::kRebuilt});
    (void)self.pause(std::chrono::seconds(3));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("rows that nobody can rebuild, as another LFS is away, are known by their hashes") {
  const auto format = GENERATE(Format::fixed(kShort), Format::fixed(kLong), Format::variable());
  const auto save = [](Bevies&, Rebuilding& r) { r.save(); };
  miss_newer_generation(format, save, [](Bevies& b, Rebuilding& r, sim::Actor& self) {
    const auto done = r.await(self, {wire::kRebuilt, wire::kRebuildPauses});
    CHECK(done.state() == wire::kRebuilt);
    CHECK(done.failed_count() == 0);
    CHECK(b.state(1).published().records() == b.records.size());
  });
}

TEST_CASE("rows that are others than a page says wait for the LFS that is away, and stay meanwhile") {
  const auto save_others = [](Bevies& b, Rebuilding& r) {
    const std::size_t first = b.records.size();
    const auto cancelled = b.begin_append(make_records(800, kShort, 4));
    REQUIRE_OK(cancelled);
    r.save();
    REQUIRE_OK(b.cancel(*cancelled));
    b.records.resize(first);
    REQUIRE_OK(b.append(make_records(800, kShort, 5)));
    REQUIRE_OK(b.append(make_records(800, kShort, 6)));  // so many that frames become pages, whenever that begins
  };
  miss_newer_generation(Format::fixed(kShort), save_others, [](Bevies&, Rebuilding& r, sim::Actor& self) {
    const auto paused = r.await(self, {wire::kRebuilt, wire::kRebuildPauses});
    REQUIRE(paused.failed_size() == 1);
    CHECK(paused.failed(0).error().text().find("is not as in that page") != std::string::npos);
  });
}

}  // namespace
}  // namespace pif::lfs::test
