// Files are written while one of their LFSs is absent: its rows are copied to the LFSs that keep their parity, which
// make pages and frames of them. docs/PROTOCOL.md "Parity".
#include "bevy.h"
#include "fake_server.h"
#include "held_executor.h"
#include "pif/access/rebuilt_read.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kShort = 500;  // eight records to a page's stretch
constexpr std::uint32_t kLong = 5000;  // one
constexpr std::uint64_t kView = Bevies::kView;

class Degraded : public Bevies {
 public:
  Degraded(sim::World& world_in, const Format& format) : Bevies(world_in, format), world(world_in) {}

  // ---- one step each ----

  net::Packet copy_packet(LfsIndex keeper, Row first, const Records& rows, const proto::ReserveReply* grant = nullptr) {
    auto packet = peers[keeper]->request(file.id, kMayRead | (grant == nullptr ? kMayCreate : kMayWrite));
    auto* asked = packet.envelope.mutable_copy_rows();
    *asked->mutable_shape() = at(keeper).shape();
    asked->set_index(lost());
    asked->set_first(first);
    asked->set_count(rows.size());
    asked->set_view(kView);
    if (grant != nullptr) {
      asked->set_generation(grant->generation());
      *asked->mutable_base() = grant->base();
    }
    packet.body = buffer_of(body(rows));
    return packet;
  }
  std::vector<access::KeptRows> keepers_of(Range rows) const {
    const RecordNumber record = layout.record_at({lost(), rows.begin});
    return access::by_keeper(layout, {lost(), rows.begin, rows.size(), record, rows.size() == 1});
  }
  Status copy_to_one(const access::KeptRows& kept, const proto::ReserveReply* grant = nullptr) {
    for (std::uint64_t done = 0; done < kept.count; done += 10) {  // a packet is small
      Records part;
      for (auto i = done; i < std::min(done + 10, kept.count); ++i)
        part.push_back(records[layout.record_at({lost(), kept.first + i * kept.step})]);
      PIF_TRY(peers[kept.keeper]->call(copy_packet(kept.keeper, kept.first + done * kept.step, part, grant)));
    }
    return {};
  }
  // Rows of the absent LFS to all who keep their parity.
  Status copy(Range rows, const proto::ReserveReply* grant = nullptr) {
    for (const auto& kept : keepers_of(rows)) PIF_TRY(copy_to_one(kept, grant));
    return {};
  }
  Status gather_in_view(LfsIndex lfs, std::uint64_t other) {
    auto packet = gather_packet(lfs);
    packet.envelope.mutable_gather()->set_view(other);
    PIF_TRY(peers[lfs]->call(std::move(packet)));
    return {};
  }

  // The one that is absent.
  LfsIndex lost() const { return absent.front(); }
  bool is_lost(RecordNumber record) const { return layout.locate(record).lfs == lost(); }
  // Someone who keeps parity of the absent LFS's row 0.
  LfsIndex keeper() const { return layout.parity_of({lost(), 0}).lfs; }

  sim::World& world;
  // Which keepers clients send copies to, with rows that they write or append.
  std::function<bool(LfsIndex)> gets_copies = [](LfsIndex) { return true; };

 private:
  Status write_absent(LfsIndex lfs, Range rows, const proto::ReserveReply* grant) override {
    REQUIRE(lfs == lost());
    for (const auto& kept : keepers_of(rows))
      if (gets_copies(kept.keeper)) PIF_TRY(copy_to_one(kept, grant));
    return {};
  }
};

// ---- files that are created ----------------------------------------------------------------------------------------

TEST_CASE("rows of an LFS that is absent while a file is created come back out of its parity") {
  const auto format = GENERATE(Format::fixed(kShort), Format::fixed(kLong), Format::variable());
  const auto count = GENERATE(1, 7, 100, 500);
  const auto lost = GENERATE(0, 1, 5);
  with_bevies<Degraded>(format, [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({static_cast<LfsIndex>(lost)});
    REQUIRE_OK(d.put(make_for(format, static_cast<std::size_t>(count), 1)));
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("what was copied and gathered survives a power loss") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    REQUIRE_OK(d.put(make_records(100, kShort, 1)));
    for (auto& node : d.nodes) node->crash();
    d.require_clean();
    for (auto& node : d.nodes) node->start();
    d.require_rebuilt();
  });
}

TEST_CASE("copies that are in pages are given up") {
  with_bevies<Degraded>(Format::fixed(kLong), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    REQUIRE_OK(d.put(make_records(300, kLong, 1)));
    const auto state = d.state(d.keeper());
    CHECK(state.pages() > 10);
    CHECK(state.pap_begin() > 10 * kLong);
    d.require_rebuilt();
  });
}

TEST_CASE("a short last record of an absent LFS has its own length") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({4});
    std::size_t last = 50;
    while (!d.is_lost(last)) ++last;
    auto records = make_records(last + 1, kShort, 1);
    records.back().resize(17);
    REQUIRE_OK(d.put(records));
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("rows that are copied twice are the same rows, and of different ones the last count") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    REQUIRE_OK(d.write(make_records(100, kShort, 2)));
    d.records = make_records(100, kShort, 1);
    const auto rows = d.layout.rows(1, 100);
    REQUIRE_OK(d.copy({0, rows}));
    REQUIRE_OK(d.copy({0, rows}));
    REQUIRE_OK(d.gather_all());
    REQUIRE_OK(d.settle());
    d.require_rebuilt();
  });
}

TEST_CASE("a gather misses rows that nobody copied, and ends well when they are") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  with_bevies<Degraded>(format, [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    const LfsIndex keeper = d.keeper();
    d.gets_copies = [&](LfsIndex lfs) { return lfs != keeper; };
    REQUIRE_OK(d.write(make_for(format, 200, 1)));
    CHECK(code_of(d.gather(keeper)) == Code::kNotFound);
    CHECK(code_of(d.gather(keeper)) == Code::kNotFound);
    for (const auto& kept : d.keepers_of({0, d.layout.rows(1, 200)}))
      if (kept.keeper == keeper) REQUIRE_OK(d.copy_to_one(kept));
    REQUIRE_OK(d.gather_all());
    REQUIRE_OK(d.settle());
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("a gather that failed is repeated with the copies that are there, and once it is done none is taken") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    const LfsIndex keeper = d.keeper();
    REQUIRE_OK(d.write(make_records(120, kShort, 1)));
    for (const std::string_view part : {".pap", ".psum"}) {
      auto& disk = *d.nodes[keeper]->disk;
      disk.set_fault([part](std::string_view call, std::string_view path) {
        return call == "write" && path.ends_with(part) ? Code::kIo : Code::kOk;
      });
      CHECK(code_of(d.gather(keeper)) == Code::kIo);
      disk.set_fault({});
    }
    REQUIRE_OK(d.gather_all());
    REQUIRE_OK(d.gather(keeper));
    CHECK(code_of(d.peers[keeper]->call(d.copy_packet(keeper, 0, {d.records[d.layout.record_at({1, 0})]}))) ==
          Code::kExists);
    REQUIRE_OK(d.settle());
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("a keeper that is started again before it gathers says that the file is to be written again") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    REQUIRE_OK(d.write(make_records(100, kShort, 1)));
    d.nodes[d.keeper()]->crash();
    d.nodes[d.keeper()]->start();
    CHECK(code_of(d.gather(d.keeper())) == Code::kNotFound);
  });
}

// ---- files that are appended to ------------------------------------------------------------------------------------

TEST_CASE("records that are appended while an LFS is absent come back") {
  const auto format = GENERATE(Format::fixed(kShort), Format::fixed(kLong), Format::variable());
  const auto lost = GENERATE(1, 5);
  with_bevies<Degraded>(format, [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({static_cast<LfsIndex>(lost)});
    REQUIRE_OK(d.put(make_for(format, 10, 1)));
    for (unsigned i = 0; i < 8; ++i) {
      REQUIRE_OK(d.append(make_for(format, i * 12 + 1, i + 2)));
      d.require_rebuilt(5);
    }
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("an LFS is lost after the file was made: what it has and what it misses come back") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    REQUIRE_OK(d.put(make_records(100, kShort, 1)));
    REQUIRE_OK(d.append(make_records(30, kShort, 2)));
    d.lose_and_kill({1});
    for (unsigned i = 0; i < 4; ++i) REQUIRE_OK(d.append(make_records(i * 20 + 3, kShort, i + 3)));
    for (auto& node : d.nodes) node->crash();
    for (auto& node : d.nodes) node->start();
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("a file that begins empty grows while an LFS is absent") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({5});
    for (unsigned i = 0; i < 5; ++i) REQUIRE_OK(d.append(make_records(i * 7 + 1, kShort, i + 2)));
    d.require_rebuilt();
    d.require_clean();
  });
}

TEST_CASE("copies are folded into pages") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const auto lost = GENERATE(1, 5);  // LFS 0, who knows the length, keeps parity of the second one
  with_bevies<Degraded>(format, [&](Degraded& d, sim::Actor& self) {
    d.lose_and_kill({static_cast<LfsIndex>(lost)});
    REQUIRE_OK(d.put(make_for(format, 10, 1)));
    const auto before = d.state(d.keeper()).pages();
    for (unsigned i = 0; i < 150; ++i) {
      REQUIRE_OK(d.append(make_for(format, format.is_fixed() ? 13 : 60, i + 2)));
      if (i % 10 == 9) (void)self.pause(std::chrono::milliseconds(300));
    }
    CHECK(d.state(d.keeper()).pages() > before);
    CHECK(d.state(d.keeper()).pap_begin() > 0);
    d.require_rebuilt(3);
    d.require_clean();
  });
}

TEST_CASE("a short record of an absent LFS is filled up by a longer copy") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    std::size_t last = 20;
    while (!d.is_lost(last)) ++last;
    auto records = make_records(last + 1, kShort, 1);
    const std::string whole = records.back();
    records.back().resize(100);
    REQUIRE_OK(d.put(records));
    const Row row = d.layout.locate(last).row;
    for (const std::size_t bytes : {250u, 400u, 500u}) {
      const std::string had = d.records.back();
      const auto given_up = d.reserve(0, kShort - had.size(), true);
      REQUIRE_OK(given_up);
      d.records.back() = pattern(kShort, 77);  // will never be published
      REQUIRE_OK(d.copy({row, row + 1}, &*given_up));
      REQUIRE_OK(d.cover_all(*given_up, last));
      REQUIRE_OK(d.cancel(*given_up));
      const auto grant = d.reserve(0, bytes - had.size(), true);
      REQUIRE_OK(grant);
      d.records.back() = whole.substr(0, bytes);
      REQUIRE_OK(d.copy({row, row + 1}, &*grant));
      d.records.back() = had;
      d.require_rebuilt();  // as it was
      d.records.back() = whole.substr(0, bytes);
      REQUIRE_OK(d.cover_all(*grant, last));
      REQUIRE_OK(d.done(*grant));
      d.require_rebuilt();
    }
    REQUIRE_OK(d.append(make_records(40, kShort, 2)));
    d.require_rebuilt();
  });
}

TEST_CASE("a cover without the copies of its own append asks for them") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    REQUIRE_OK(d.put(make_records(50, kShort, 1)));
    const auto given_up = d.send_rows(make_records(40, kShort, 2));  // the same records, of an older append
    REQUIRE_OK(given_up);
    REQUIRE_OK(d.cancel(*given_up));
    d.records.resize(50);
    d.gets_copies = [](LfsIndex) { return false; };
    const auto grant = d.send_rows(make_records(40, kShort, 3));
    REQUIRE_OK(grant);
    CHECK(code_of(d.cover_all(*grant, 50)) == Code::kRetry);
    REQUIRE_OK(d.copy(d.layout.rows(1, Range{50, 90}), &*grant));
    REQUIRE_OK(d.cover_all(*grant, 50));
    REQUIRE_OK(d.done(*grant));
    d.require_rebuilt();
    d.records.resize(50);
    const auto late = make_records(40, kShort, 2);
    d.records.insert(d.records.end(), late.begin(), late.end());
    CHECK(code_of(d.copy(d.layout.rows(1, Range{50, 90}), &*given_up)) == Code::kRetry);
  });
}

TEST_CASE("copies of an append that was cancelled are not taken for records") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    REQUIRE_OK(d.put(make_records(50, kShort, 1)));
    for (unsigned i = 0; i < 3; ++i) {
      const auto before = d.records;
      const auto grant = d.send_rows(make_records(70, kShort, 100 + i));
      REQUIRE_OK(grant);
      REQUIRE_OK(d.cover_all(*grant, before.size()));
      REQUIRE_OK(d.cancel(*grant));
      d.records = before;
      d.require_rebuilt();
      REQUIRE_OK(d.append(make_records(30, kShort, 200 + i)));
      d.require_rebuilt();
    }
    d.require_clean();
  });
}

TEST_CASE("copies of an older generation that come while those of a newer one are written are refused") {
  HeldExecutor executor;
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor& self) {
    d.lose({1});
    const LfsIndex keeper = d.keeper();
    d.nodes[keeper]->kill();
    d.nodes[keeper]->executor = &executor;
    d.nodes[keeper]->start();
    REQUIRE_OK(d.put(make_records(50, kShort, 1)));
    const auto given_up = d.send_rows(make_records(40, kShort, 2));
    REQUIRE_OK(given_up);
    REQUIRE_OK(d.cancel(*given_up));
    d.records.resize(50);
    d.gets_copies = [&](LfsIndex lfs) { return lfs != keeper; };
    const auto grant = d.send_rows(make_records(40, kShort, 3));
    REQUIRE_OK(grant);
    const auto kept = d.keepers_of(d.layout.rows(1, Range{50, 90}));
    const auto mine = std::find_if(kept.begin(), kept.end(), [&](const auto& one) { return one.keeper == keeper; });
    REQUIRE(mine != kept.end());
    const Records row = {d.records[d.layout.record_at({1, mine->first})]};
    executor.hold(1);
    const auto newer = d.peers[keeper]->start(d.copy_packet(keeper, mine->first, row, &*grant));
    while (executor.held() == 0) (void)self.pause(std::chrono::milliseconds(1));  // what was cancelled is erased
    const auto late = d.peers[keeper]->start(d.copy_packet(keeper, mine->first, row, &*given_up));
    (void)self.pause(std::chrono::milliseconds(100));
    executor.release();
    REQUIRE_OK(d.peers[keeper]->wait(newer));
    CHECK(code_of(d.peers[keeper]->wait(late)) == Code::kRetry);
    d.nodes[keeper]->kill();  // before its executor
  });
}

// ---- what is refused -----------------------------------------------------------------------------------------------

TEST_CASE("copies, gathers and covers of another view are refused") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    const LfsIndex keeper = d.keeper();
    REQUIRE_OK(d.write(make_records(50, kShort, 1)));
    const Records row = {d.records[d.layout.record_at({1, 0})]};
    const auto copy = [&](std::uint64_t view, const proto::ReserveReply* grant) {
      auto packet = d.copy_packet(keeper, 0, row, grant);
      packet.envelope.mutable_copy_rows()->set_view(view);
      return code_of(d.peers[keeper]->call(std::move(packet)));
    };
    CHECK(copy(kView - 1, nullptr) == Code::kOldView);
    CHECK(copy(kView + 1, nullptr) == Code::kRetry);
    CHECK(code_of(d.gather_in_view(keeper, kView - 1)) == Code::kOldView);
    CHECK(code_of(d.gather_in_view(keeper, kView + 1)) == Code::kRetry);
    REQUIRE_OK(d.gather_all());
    REQUIRE_OK(d.settle());
    const auto grant = d.send_rows(make_records(10, kShort, 2));
    REQUIRE_OK(grant);
    CHECK(copy(kView - 1, &*grant) == Code::kOldView);
    CHECK(copy(kView + 1, &*grant) == Code::kRetry);
    const auto cover = [&](std::uint64_t view) {
      auto packet = d.cover_packet(keeper, *grant, 50);
      packet.envelope.mutable_cover()->set_view(view);
      return code_of(d.peers[keeper]->call(std::move(packet)));
    };
    CHECK(cover(kView - 1) == Code::kOldView);
    CHECK(cover(kView + 1) == Code::kRetry);
    REQUIRE_OK(d.cover_all(*grant, 50));
  });
}

TEST_CASE("copies that lie are refused") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    d.lose_and_kill({1});
    const LfsIndex keeper = d.keeper();
    const Records row = {pattern(kShort, 1)};
    const auto copy = [&](const std::function<void(proto::CopyRows&)>& change) {
      auto packet = d.copy_packet(keeper, 0, row);
      change(*packet.envelope.mutable_copy_rows());
      return code_of(d.peers[keeper]->call(std::move(packet)));
    };
    CHECK(copy([](proto::CopyRows& asked) { asked.set_index(2); }) == Code::kInvalid);  // is not absent
    CHECK(copy([](proto::CopyRows& asked) { asked.set_index(99); }) == Code::kInvalid);
    CHECK(copy([](proto::CopyRows& asked) { asked.set_first(1); }) == Code::kInvalid);  // another keeps its parity
    CHECK(copy([](proto::CopyRows& asked) { asked.set_first(~std::uint64_t{0} - 1); }) == Code::kTooLarge);
    CHECK(copy([](proto::CopyRows& asked) { asked.set_count(0); }) == Code::kInvalid);
    CHECK(copy([](proto::CopyRows& asked) { asked.set_count(2); }) == Code::kInvalid);
    CHECK(copy([](proto::CopyRows& asked) { asked.set_count(~std::uint64_t{0}); }) == Code::kTooLarge);
    CHECK(copy([](proto::CopyRows& asked) { asked.set_generation(7); }) == Code::kBadCapability);  // no right to write
    CHECK(copy([&](proto::CopyRows& asked) { *asked.mutable_shape() = d.at(2).shape(); }) == Code::kInvalid);
    CHECK(copy([](proto::CopyRows& asked) { asked.mutable_shape()->mutable_layout()->set_form(0); }) == Code::kInvalid);
    const LfsIndex other = 4;  // of the companion bevy, and keeps no parity of LFS 1
    CHECK(code_of(d.peers[other]->call(d.copy_packet(other, 0, row))) == Code::kInvalid);
    auto packet = d.copy_packet(keeper, 0, row);
    packet.envelope.set_capability(d.peers[keeper]->mint_rights(d.file.id, kMayCreate | kMayWrite));
    packet.envelope.mutable_copy_rows()->set_generation(7);  // and no base
    CHECK(code_of(d.peers[keeper]->call(std::move(packet))) == Code::kInvalid);
    packet = d.copy_packet(keeper, 0, row);
    packet.envelope.set_capability(d.peers[keeper]->mint_rights(d.file.id, kMayCreate | kMayWrite));
    packet.envelope.mutable_copy_rows()->set_generation(std::uint64_t{1} << 63);  // that no sequencer gives out
    packet.envelope.mutable_copy_rows()->mutable_base();
    CHECK(code_of(d.peers[keeper]->call(std::move(packet))) == Code::kInvalid);
    CHECK(copy([](proto::CopyRows&) {}) == Code::kOk);
  });
}

TEST_CASE("an LFS that is absent serves nothing of files with parity, and all others") {
  const auto state = GENERATE(std::uint32_t{wire::kViewLost}, std::uint32_t{wire::kViewRebuilding});
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    REQUIRE_OK(d.put(make_records(50, kShort, 1)));
    d.lose({1}, state);
    Peer& x = *d.peers[1];
    CHECK(code_of(x.read(d.file.id, 0, 1)) == Code::kUnavailable);
    CHECK(code_of(x.attach(d.file.id)) == Code::kUnavailable);
    CHECK(code_of(d.gather(1)) == Code::kUnavailable);
    REQUIRE(d.layout.parity_of({5, 0}).lfs == 1);
    CHECK(code_of(d.rebuilt({5, 0})) == Code::kUnavailable);
    TestFile fresh = d.at(1);
    fresh.id = 8;
    CHECK(code_of(x.write(fresh, 0, 1, pattern(kShort, 1))) == Code::kUnavailable);
    CHECK(code_of(x.attach_new(fresh)) == Code::kUnavailable);
    CHECK(code_of(x.seal(fresh, 0, 0)) == Code::kUnavailable);
    const auto grant = d.reserve(10, 10 * kShort);
    REQUIRE_OK(grant);
    const auto added = make_records(10, kShort, 2);
    d.records.insert(d.records.end(), added.begin(), added.end());
    CHECK(code_of(x.call(d.cover_packet(1, *grant, 50))) == Code::kUnavailable);
    TestFile plain;
    plain.id = 9;
    plain.nodes = {2};
    REQUIRE_OK(x.put(plain, pattern(500, 3)));
    CHECK(x.read(9, 0, 5).value() == pattern(500, 3));
  });
}

TEST_CASE("an LFS that returns is not read by clients") {
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor&) {
    REQUIRE_OK(d.put(make_records(50, kShort, 1)));
    d.lose({1}, wire::kViewReturning);
    CHECK(code_of(d.peers[1]->read(d.file.id, 0, 1)) == Code::kUnavailable);
    CHECK(code_of(d.peers[1]->attach(d.file.id)) == Code::kUnavailable);
  });
}

TEST_CASE("a gather in the middle of which the view changes is void, and is done again in the new one") {
  HeldExecutor executor;
  FakeServer server;
  server.unknown = 1;  // pending
  with_bevies<Degraded>(Format::fixed(kShort), [&](Degraded& d, sim::Actor& self) {
    d.lose({2});
    constexpr LfsIndex kKeeper = 5;  // has none of its rows in its parity
    auto& node = *d.nodes[kKeeper];
    node.kill();
    node.server.set_unix_path("sim:server");
    node.executor = &executor;
    d.world.spawn("server", [&](sim::Actor& actor) { server.run(actor, node); }, {0, {0}});
    node.start();
    REQUIRE_OK(d.write(make_records(50, kShort, 1)));
    executor.hold(1);
    const auto call = d.peers[kKeeper]->start(d.gather_packet(kKeeper));
    while (executor.held() == 0) (void)self.pause(std::chrono::milliseconds(1));
    server.view = wire::pack_view(node.key, Bevies::view_without({4}, kView + 1));
    (void)self.pause(std::chrono::seconds(3));
    auto packet = d.gather_packet(kKeeper);
    packet.envelope.mutable_gather()->set_view(kView + 1);
    const auto again = d.peers[kKeeper]->start(std::move(packet));
    (void)self.pause(std::chrono::milliseconds(100));
    executor.release();
    CHECK(code_of(d.peers[kKeeper]->wait(call)) == Code::kOldView);
    REQUIRE_OK(d.peers[kKeeper]->wait(again));
  });
}

}  // namespace
}  // namespace pif::lfs::test
