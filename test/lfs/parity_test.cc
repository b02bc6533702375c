// Parity that LFSs keep of their companions' rows: gathered when a file is sealed, covered when it is appended to,
// folded, and rows rebuilt out of it.
#include "bevy.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kShort = 500;  // eight records to a page's stretch
constexpr std::uint32_t kLong = 5000;  // one

TEST_CASE("every record of a gathered file is rebuilt out of its parity") {
  const auto length = GENERATE(kShort, kLong);
  const auto count = GENERATE(1, 2, 7, 100, 333);
  with_bevies(Format::fixed(length), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(static_cast<std::size_t>(count), length, 1)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("a short last record is rebuilt with its own length") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    auto records = make_records(100, kShort, 1);
    records.back().resize(17);
    REQUIRE_OK(b.put(records));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("variable records are rebuilt") {
  with_bevies(Format::variable(), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_variable(500, 3)));
    CHECK(b.state(0).pages() > 0);
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("one answer has many rows") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(600, kShort, 1)));
    const Cell cell = b.layout.locate(0);
    const auto rows = b.rebuilt(cell, 100);
    REQUIRE_OK(rows);
    REQUIRE(b.rows_given > 1);
    for (std::uint64_t i = 0; i < b.rows_given; ++i)
      CHECK(rows->substr(i * kShort, kShort) == b.records[b.layout.record_at({cell.lfs, cell.row + 2 * i})]);
  });
}

TEST_CASE("a gather is done once, and is refused with another length") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.write(make_records(100, kShort, 1)));
    REQUIRE_OK(b.gather_all());
    REQUIRE_OK(b.gather_all());
    CHECK(code_of(b.gather(1, FileLength{99, 99 * kShort})) == Code::kExists);
    REQUIRE_OK(b.settle());
    REQUIRE_OK(b.gather(1));
    REQUIRE_OK(b.append(make_records(10, kShort, 2)));
    CHECK(code_of(b.gather(1)) == Code::kExists);
    b.require_all_rebuilt();
  });
}

TEST_CASE("a gather that lies is refused") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.write(make_records(100, kShort, 1)));
    CHECK(code_of(b.gather(1, FileLength{100, 100 * kShort + 1})) == Code::kInvalid);
    CHECK(code_of(b.gather(1, FileLength{~std::uint64_t{0}, 7})) == Code::kTooLarge);
    CHECK(!b.gather(1, FileLength{1000, 1000 * kShort}));
    auto packet = b.peers[1]->request(b.file.id, kMayRead);
    *packet.envelope.mutable_gather()->mutable_shape() = b.at(1).shape();
    CHECK(code_of(b.peers[1]->call(std::move(packet))) == Code::kBadCapability);
    packet = b.peers[1]->request(b.file.id, kMayCreate);
    *packet.envelope.mutable_gather()->mutable_shape() = b.at(2).shape();
    CHECK(code_of(b.peers[1]->call(std::move(packet))) == Code::kInvalid);
    packet = b.peers[1]->request(b.file.id, kMayCreate);
    auto old = b.at(1).shape();
    old.mutable_layout()->set_form(0);
    *packet.envelope.mutable_gather()->mutable_shape() = old;
    CHECK(code_of(b.peers[1]->call(std::move(packet))) == Code::kInvalid);
    REQUIRE_OK(b.gather_all());
  });
}

TEST_CASE("rows that are lost before they are gathered are missed") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.write(make_records(100, kShort, 1)));
    REQUIRE_OK(b.peers[4]->settle({}, {b.file.id}));
    std::size_t failed = 0;
    for (LfsIndex lfs = 0; lfs < 3; ++lfs) failed += b.gather(lfs) ? 0 : 1;
    CHECK(failed == 2);  // of three companions, two have its rows in their parity
  });
}

TEST_CASE("a keeper that is killed while it gathers gathers again") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.write(make_records(100, kShort, 1)));
    unsigned writes = 0;
    auto& node = *b.nodes[1];
    node.disk->set_fault([&](std::string_view call, std::string_view path) {
      const bool is_parity = path.ends_with(".par") || path.ends_with(".psum") || path.ends_with(".pap");
      return call == "write" && is_parity && ++writes == 2 ? Code::kIo : Code::kOk;
    });
    CHECK(!b.gather(1));
    node.disk->set_fault({});
    node.crash();
    node.start();
    REQUIRE_OK(b.gather_all());
    REQUIRE_OK(b.settle());
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("what was gathered survives a power loss of all") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    REQUIRE_OK(b.append(make_records(77, kShort, 2)));
    for (auto& node : b.nodes) node->crash();
    b.require_clean();
    for (auto& node : b.nodes) node->start();
    b.require_all_rebuilt();
  });
}

TEST_CASE("appended records are rebuilt, whatever they are covered by") {
  const auto length = GENERATE(kShort, kLong);
  with_bevies(Format::fixed(length), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(10, length, 1)));
    for (unsigned i = 0; i < 12; ++i) REQUIRE_OK(b.append(make_records(i * 9 + 1, length, i + 2)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("gathers and covers wait for nobody") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor& self) {
    const Time begun = self.clock().now();
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    CHECK(self.clock().now() - begun < std::chrono::milliseconds(500));
    REQUIRE_OK(b.append(make_records(1, kShort, 2)));  // the sequencer and its deputy meet
    for (unsigned i = 0; i < 30; ++i) {
      const Time before = self.clock().now();
      REQUIRE_OK(b.append(make_records(40, kShort, 3 + i)));
      CHECK(self.clock().now() - before < std::chrono::milliseconds(500));
    }
  });
}

TEST_CASE("an empty file grows") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    for (unsigned i = 0; i < 5; ++i) REQUIRE_OK(b.append(make_records(i + 1, kShort, i + 2)));
    b.require_all_rebuilt();
    b.require_clean();
  });
}

TEST_CASE("frames are folded into pages") {
  const auto format = GENERATE(Format::fixed(kShort), Format::fixed(kLong), Format::variable());
  with_bevies(format, [&](Bevies& b, sim::Actor& self) {
    const auto make = [&](std::size_t count, unsigned seed) {
      return format.is_fixed() ? make_records(count, format.record_length, seed) : make_variable(count, seed);
    };
    REQUIRE_OK(b.put(make(10, 1)));
    const auto before = b.state(1).pages();
    for (unsigned i = 0; i < 150; ++i) {
      REQUIRE_OK(b.append(make(format.is_fixed() ? 13 : 60, i + 2)));
      if (i % 10 == 9) (void)self.pause(std::chrono::milliseconds(300));
    }
    CHECK(b.state(1).pages() > before);
    CHECK(b.state(1).pap_begin() > 0);
    for (std::size_t n = 0; n < b.records.size(); n += 7) {
      const auto found = b.rebuilt(b.layout.locate(n));
      INFO("record " << n << (found ? "" : found.error().to_string()));
      REQUIRE(found);
      REQUIRE(*found == b.body({b.records[n]}));
    }
    b.require_clean();
  });
}

TEST_CASE("what a cancelled append left is not taken for records") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    const auto whole = b.records;
    for (unsigned i = 0; i < 4; ++i) {
      const auto before = b.records;
      const auto grant = b.begin_append(make_records(70, kShort, 100 + i));
      REQUIRE_OK(grant);
      REQUIRE_OK(b.cancel(*grant));
      const auto lost = b.records;
      b.records = before;
      b.require_all_rebuilt();
      REQUIRE_OK(b.append(make_records(30, kShort, 200 + i)));
      b.require_all_rebuilt();
      const auto now = b.records;
      b.records = lost;
      CHECK(code_of(b.cover(1, *grant, before.size())) == Code::kRetry);
      b.records = now;
    }
    b.require_clean();
  });
}

TEST_CASE("a filled record is rebuilt at each of its lengths") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    auto records = make_records(20, kShort, 1);
    const std::string last = records.back();
    records.back().resize(100);
    REQUIRE_OK(b.put(records));
    for (const std::size_t bytes : {250u, 400u, 500u}) {
      const std::size_t had = b.records.back().size();
      const auto grant = b.reserve(0, bytes - had, true);
      REQUIRE_OK(grant);
      const Cell cell = b.layout.locate(19);
      REQUIRE_OK(
          b.append_rows(cell.lfs, *grant, cell.row, {last.substr(had, bytes - had)}, static_cast<std::uint32_t>(had)));
      b.require_all_rebuilt();  // as it was
      b.records.back() = last.substr(0, bytes);
      REQUIRE_OK(b.cover_all(*grant, 19));
      REQUIRE_OK(b.done(*grant));
      b.require_all_rebuilt();
    }
  });
}

TEST_CASE("a cover that lies is refused") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(100, kShort, 1)));
    const auto grant = b.reserve(10, 10 * kShort);
    REQUIRE_OK(grant);
    const auto whole = b.records;
    const auto added = make_records(10, kShort, 2);
    b.records.insert(b.records.end(), added.begin(), added.end());
    const LfsIndex keeper = b.layout.parity_of(b.layout.locate(100)).lfs;
    CHECK(code_of(b.cover(keeper, *grant, 100)) == Code::kRetry);  // no rows yet
    auto wrong = *grant;
    wrong.set_generation(0);
    CHECK(code_of(b.cover(keeper, wrong, 100)) == Code::kInvalid);
    wrong = *grant;
    wrong.mutable_base()->set_bytes(1);
    CHECK(code_of(b.cover(keeper, wrong, 100)) == Code::kInvalid);
    b.records = whole;
    b.require_all_rebuilt();
  });
}

TEST_CASE("two LFSs of a group that are away are named") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor& self) {
    (void)self.pause(std::chrono::seconds(11));  // who has just begun waits for word of where the others are
    REQUIRE_OK(b.put(make_records(200, kShort, 1)));
    const Cell cell = b.layout.locate(0);
    const auto members = b.layout.members_of(b.layout.parity_of(cell));
    for (const Cell member : members)
      if (member.lfs != cell.lfs) b.nodes[member.lfs]->kill();
    const auto found = b.rebuilt(cell);
    REQUIRE(!found);
    CHECK(found.error().code == Code::kUnavailable);
    CHECK(found.error().text.find("record 0") != std::string::npos);
    for (const Cell member : members)
      CHECK(found.error().text.find("lfs" + std::to_string(member.lfs)) != std::string::npos);
  });
}

TEST_CASE("a checker sees a page that went bad, and a frame that is missing") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor&) {
    REQUIRE_OK(b.put(make_records(200, kShort, 1)));
    REQUIRE(b.state(1).pages() > 0);
    auto& node = *b.nodes[1];
    node.kill();
    const std::string stem = component::stem(node.root(), FileId(b.file.id));
    node.disk->flip_bit(stem + ".par", 5, 0);
    auto report = node.check();
    REQUIRE_OK(report);
    CHECK(!report->damages.empty());
    node.disk->flip_bit(stem + ".par", 5, 0);
    node.disk->flip_bit(stem + ".pap", 60, 0);
    report = node.check();
    REQUIRE_OK(report);
    CHECK(!report->damages.empty());
  });
}

}  // namespace
}  // namespace pif::lfs::test
