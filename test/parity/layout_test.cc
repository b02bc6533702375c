// What a layout is, cell by cell. What placement with parity guarantees is in guarantees_test.cc.
#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "layouts.h"
#include "pif/base/limits.h"

namespace pif::parity {
namespace {

// Figure 4.1 of the thesis, both bevies side by side: n_k is data record n with the k-th parity record of its bevy's
// companion, Pk is that parity record.
constexpr const char* kFigure41 =
    "P0    0_0   1_1   2_2    P0    4_0   5_1   6_2\n"
    "3_3   P1    8_0   9_1    7_3   P1    12_0  13_1\n"
    "10_2  11_3  P2    16_0   14_2  15_3  P2    20_0\n"
    "17_1  18_2  19_3  P3     21_1  22_2  23_3  P3\n"
    "P4    24_4  25_5  26_6   P4    28_4  29_5  30_6\n"
    "27_7  P5    32_4  33_5   31_7  P5    36_4  37_5\n"
    "34_6  35_7  P6    40_4   38_6  39_7  P6    44_4\n"
    "41_5  42_6  43_7  P7     45_5  46_6  47_7  P7\n";

TEST_CASE("figure 4.1 is reproduced cell by cell, in both directions") {
  const Layout layout = layout_of({4, 4});
  std::map<std::pair<LfsIndex, Row>, std::string> shown;
  for (RecordNumber n = 0; n < 48; ++n) {
    const Cell cell = layout.locate(n);
    CHECK(layout.record_at(cell) == n);
    const Cell parity = layout.parity_of(cell);
    CHECK((parity.lfs < 4) == (cell.lfs >= 4));
    const Row parity_row = layout.parity_cell_row(parity.lfs, parity.row);
    shown[{cell.lfs, layout.cell_row(cell)}] = fmt::format("{}_{}", n, parity_row);
    shown[{parity.lfs, parity_row}] = fmt::format("P{}", parity_row);
  }
  std::istringstream lines(kFigure41);
  std::string word;
  for (Row row = 0; row < 8; ++row) {
    for (LfsIndex lfs = 0; lfs < 8; ++lfs) {
      REQUIRE(lines >> word);
      CHECK(shown[{lfs, row}] == word);
    }
  }
  CHECK_FALSE(lines >> word);
}

TEST_CASE("without bevies a layout is plain interleaving, with a constant distance between an LFS's records") {
  const Layout layout = Layout::make(5).value();
  CHECK_FALSE(layout.has_parity());
  CHECK(layout.is_even());
  CHECK_FALSE(layout_of({4, 4}).is_even());
  CHECK(layout.bevies().empty());
  CHECK(layout.locate(13) == Cell{3, 2});
  CHECK(layout.record_at({3, 2}) == 13u);
  CHECK(layout.cell_row({3, 2}) == 2);
  CHECK(layout.rows(3, Range{13, 19}) == Range{2, 4});
}

TEST_CASE("records are in the cells that the thesis's equations give, and rows are what is left without parity") {
  for (const auto& sizes : all_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    for (RecordNumber n = 0; n < 4 * superblock(layout); ++n) {
      const Cell in_figure = thesis::locate(sizes, n);
      const Cell cell = layout.locate(n);
      REQUIRE(cell == Cell{in_figure.lfs, thesis::row_of(sizes, in_figure)});
      REQUIRE(layout.cell_row(cell) == in_figure.row);
    }
  }
}

TEST_CASE("parity is where the thesis's equations put it, and has the members that they give") {
  for (const auto& sizes : all_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    for (RecordNumber n = 0; n < 4 * superblock(layout); ++n) {
      const Cell parity_cell = thesis::parity_of(sizes, thesis::locate(sizes, n));
      const Cell parity = layout.parity_of(layout.locate(n));
      REQUIRE(parity == Cell{parity_cell.lfs, thesis::row_of(sizes, parity_cell)});
      REQUIRE(layout.parity_cell_row(parity.lfs, parity.row) == parity_cell.row);
      std::vector<Cell> members;
      for (const Cell member : thesis::members_of(sizes, parity_cell))
        members.push_back({member.lfs, thesis::row_of(sizes, member)});
      std::sort(members.begin(), members.end(), [](Cell a, Cell b) { return a.lfs < b.lfs; });
      REQUIRE(layout.members_of(parity) == members);
    }
  }
}

TEST_CASE("rows are dense: an LFS's records come to rows 0, 1, 2, ... of it, in their order") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::vector<Row> next(layout.width());
    for (RecordNumber n = 0; n < two_periods(layout); ++n) {
      const Cell cell = layout.locate(n);
      REQUIRE(cell.row == next[cell.lfs]++);
      REQUIRE(layout.record_at(cell) == n);
    }
  }
}

TEST_CASE("locating is inverted for any layout and any record that fits 60 bits") {
  REQUIRE(rc::check([] {
    const Layout layout = arbitrary_layout();
    const auto n = *rc::gen::inRange<RecordNumber>(0, RecordNumber{1} << 60);
    const Cell cell = layout.locate(n);
    RC_ASSERT(cell.lfs < layout.width());
    RC_ASSERT(layout.record_at(cell) == n);
    RC_ASSERT(layout.rows(cell.lfs, n) == cell.row);
  }));
}

TEST_CASE("the parity of an LFS's rows is with its keepers, in turn") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const auto keepers = layout.keepers(lfs);
      REQUIRE(keepers.size() + 1 == bevy_of(sizes, lfs).second);
      for (Row row = 0; row < 3 * keepers.size() * layout.width(); ++row)
        REQUIRE(layout.parity_of({lfs, row}).lfs == keepers[row % keepers.size()]);
    }
  }
}

TEST_CASE("a row is a member of its parity's group, and of no other") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::map<std::pair<LfsIndex, Row>, unsigned> groups_of;
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const std::uint32_t size = bevy_of(sizes, lfs).second;
      for (Row row = 0; row < 3 * (size - 1); ++row) {
        const auto members = layout.members_of(layout.parity_of({lfs, row}));
        REQUIRE(std::count(members.begin(), members.end(), Cell{lfs, row}) == 1);
      }
      for (Row parity_row = 0; parity_row < 3; ++parity_row) {
        for (const Cell member : layout.members_of({lfs, parity_row})) {
          REQUIRE(layout.parity_of(member) == Cell{lfs, parity_row});
          ++groups_of[{member.lfs, member.row}];
        }
      }
    }
    for (const auto& [cell, groups] : groups_of) REQUIRE(groups == 1);
  }
}

TEST_CASE("a parity row has B - 1 members on B - 1 LFSs of the companion bevy, by rising LFS, at constant distances") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const auto [bevy, size] = bevy_of(sizes, lfs);
      const Layout::ParityMembers members = layout.members(lfs);
      REQUIRE(members.lfs.size() == size - 1);
      REQUIRE(members.offsets.size() == size - 1);
      for (std::size_t i = 0; i < members.lfs.size(); ++i) {
        REQUIRE(bevy_of(sizes, members.lfs[i]).first == (bevy + sizes.size() / 2) % sizes.size());
        REQUIRE((i == 0 || members.lfs[i - 1] < members.lfs[i]));
        REQUIRE(members.offsets[i] < size - 1);
        for (Row j = 0; j < 4; ++j)
          REQUIRE(layout.members_of({lfs, j})[i] == Cell{members.lfs[i], j * (size - 1) + members.offsets[i]});
      }
    }
  }
}

TEST_CASE("full groups and parity rows of a prefix agree with counting members") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::vector<std::vector<std::uint32_t>> members(layout.width());  // of each parity row, so far
    const std::uint64_t records = std::min<std::uint64_t>(two_periods(layout), 2000);
    for (std::uint64_t count = 0; count <= records; ++count) {
      for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
        const auto& of = members[lfs];
        const std::uint32_t all = bevy_of(sizes, lfs).second - 1;
        const auto first_partial = std::find_if(of.begin(), of.end(), [&](std::uint32_t has) { return has < all; });
        REQUIRE(layout.full_groups(lfs, count) == static_cast<std::uint64_t>(first_partial - of.begin()));
        REQUIRE(layout.parity_rows(lfs, count) == of.size());
      }
      const Cell parity = layout.parity_of(layout.locate(count));
      auto& of = members[parity.lfs];
      of.resize(std::max<std::size_t>(of.size(), parity.row + 1));
      ++of[parity.row];
    }
  }
}

TEST_CASE("three records on two bevies of four have three parity rows, on LFSs of the other bevy") {
  const Layout layout = layout_of({4, 4});
  std::vector<Cell> parity;
  for (RecordNumber n = 0; n < 3; ++n) parity.push_back(layout.parity_of(layout.locate(n)));
  CHECK(parity == std::vector<Cell>{{4, 0}, {5, 0}, {6, 0}});
  CHECK(layout.parity_cell_row(6, 0) == 2);
  for (LfsIndex lfs = 0; lfs < 8; ++lfs) {
    CHECK(layout.rows(lfs, 3) == (lfs >= 1 && lfs <= 3 ? 1 : 0));
    CHECK(layout.parity_rows(lfs, 3) == (lfs >= 4 && lfs <= 6 ? 1 : 0));
    CHECK(layout.full_groups(lfs, 3) == 0);
  }
}

TEST_CASE("rows of a prefix agree with counting") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::vector<std::uint64_t> held(layout.width());
    const std::uint64_t records = two_periods(layout);
    for (std::uint64_t count = 0; count <= records; ++count) {
      for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) REQUIRE(layout.rows(lfs, count) == held[lfs]);
      ++held[layout.locate(count).lfs];
    }
  }
}

TEST_CASE("rows of a range are those that a walk over its records finds, without a gap") {
  REQUIRE(rc::check([] {
    const Layout layout = arbitrary_layout();
    const auto begin = *rc::gen::inRange<RecordNumber>(0, 100000);
    const Range range{begin, begin + *rc::gen::inRange<std::uint64_t>(0, 4 * layout.width())};
    std::vector<std::vector<Row>> walked(layout.width());
    for (RecordNumber n = range.begin; n < range.end; ++n) {
      const Cell cell = layout.locate(n);
      walked[cell.lfs].push_back(cell.row);
    }
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const Range rows = layout.rows(lfs, range);
      RC_ASSERT(rows.size() == walked[lfs].size());
      for (std::size_t i = 0; i < walked[lfs].size(); ++i) RC_ASSERT(walked[lfs][i] == rows.begin + i);
    }
  }));
}

TEST_CASE("neighbouring ranges give neighbouring rows: every row of an LFS is in exactly one") {
  REQUIRE(rc::check([] {
    const Layout layout = arbitrary_layout();
    const auto lfs = *rc::gen::inRange<LfsIndex>(0, layout.width());
    Row expected = 0;
    RecordNumber begin = 0;
    for (int i = 0; i < 20; ++i) {
      const RecordNumber end = begin + *rc::gen::inRange<std::uint64_t>(0, 3 * layout.width());
      const Range rows = layout.rows(lfs, Range{begin, end});
      RC_ASSERT(rows.begin == expected);
      expected = rows.end;
      begin = end;
    }
  }));
}

TEST_CASE("a range that ends before it begins has no rows") {
  CHECK(layout_of({4, 4}).rows(2, Range{40, 7}).empty());
  CHECK(Layout::make(8).value().rows(2, Range{40, 7}).empty());
}

std::string refusal(std::uint32_t width, std::vector<std::uint32_t> bevies) {
  const auto layout = Layout::make(width, std::move(bevies));
  REQUIRE_FALSE(layout);
  CHECK(layout.error().code == Code::kInvalid);
  return layout.error().text;
}

TEST_CASE("each invalid layout is refused with the rule it breaks") {
  CHECK(refusal(0, {}) == "width 0 is not between 1 and 4096 LFSs");
  CHECK(refusal(kWidthMax + 1, {}) == "width 4097 is not between 1 and 4096 LFSs");
  CHECK(refusal(12, {4, 4, 4}) == "3 bevies are given: their number must be even, so that each has a companion");
  CHECK(refusal(8, {3, 1, 3, 1}) == "bevy 1 has size 1: a bevy needs at least 2 LFSs");
  CHECK(refusal(8, {4, 0}) == "bevy 1 has size 0: a bevy needs at least 2 LFSs");
  CHECK(refusal(10, {2, 3, 3, 2}) == "bevies 0 and 2 are companions and must have the same size, not 2 and 3");
  CHECK(refusal(9, {4, 4}) == "the bevy sizes add up to 8, but the width is 9");
  std::vector<std::uint32_t> primes = {3, 4, 6, 8, 12, 14, 18, 20, 24, 30, 32, 38, 42};  // each plus one
  const std::uint32_t half = std::accumulate(primes.begin(), primes.end(), 0U);
  primes.insert(primes.end(), primes.begin(), primes.begin() + 13);
  CHECK(refusal(2 * half, primes) == "the bevies have too many different sizes");
  // A sum that wraps around at 32 bits must not pass for the width.
  CHECK(refusal(4, {0x80000002u, 0x80000002u}) == "the bevy sizes add up to 4294967300, but the width is 4");
}

TEST_CASE("the widest file that is allowed has a layout, with and without bevies") {
  CHECK(Layout::make(kWidthMax).has_value());
  CHECK(Layout::make(kWidthMax, std::vector<std::uint32_t>(kWidthMax / 2, 2)).has_value());
}

TEST_CASE("layouts are equal if width and bevies are") {
  CHECK(layout_of({4, 4}) == layout_of({4, 4}));
  CHECK_FALSE(layout_of({4, 4}) == layout_of({2, 2, 2, 2}));
  CHECK_FALSE(layout_of({4, 4}) == Layout::make(8).value());
}

}  // namespace
}  // namespace pif::parity
