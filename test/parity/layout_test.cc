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

// The same table as the library sees it. Parity records of a bevy are numbered by row: one to each.
std::string describe(const Layout& layout, Cell cell) {
  if (layout.is_parity(cell)) return fmt::format("P{}", cell.row);
  return fmt::format("{}_{}", layout.record_at(cell).value(), layout.parity_of(cell).row);
}

TEST_CASE("figure 4.1 is reproduced cell by cell, in both directions") {
  const Layout layout = layout_of({4, 4});
  std::istringstream lines(kFigure41);
  std::string word;
  for (Row row = 0; row < 8; ++row) {
    for (LfsIndex lfs = 0; lfs < 8; ++lfs) {
      REQUIRE(lines >> word);
      CHECK(describe(layout, {lfs, row}) == word);
      if (word[0] == 'P') {
        CHECK_FALSE(layout.record_at({lfs, row}).has_value());
      } else {
        CHECK(layout.locate(std::stoull(word)) == Cell{lfs, row});
        CHECK((layout.parity_of({lfs, row}).lfs < 4) == (lfs >= 4));
      }
    }
  }
  CHECK_FALSE(lines >> word);
}

TEST_CASE("without bevies a layout is plain interleaving and has no parity cells") {
  const Layout layout = Layout::make(5).value();
  CHECK_FALSE(layout.has_parity());
  CHECK(layout.bevies().empty());
  CHECK(layout.locate(13) == Cell{3, 2});
  CHECK(layout.record_at({3, 2}) == 13u);
  CHECK_FALSE(layout.is_parity({0, 0}));
  CHECK(layout.next_data_row(2, 7) == 7);
  CHECK(layout.rows(3, Range{13, 19}) == Range{2, 4});
}

TEST_CASE("locating a record is a bijection onto the data cells") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::vector<std::vector<bool>> seen(layout.width());
    const std::uint64_t records = two_periods(layout);
    for (RecordNumber n = 0; n < records; ++n) {
      const Cell cell = layout.locate(n);
      REQUIRE_FALSE(layout.is_parity(cell));
      REQUIRE(layout.record_at(cell) == n);
      auto& column = seen[cell.lfs];
      column.resize(std::max<std::size_t>(column.size(), cell.row + 1));
      REQUIRE_FALSE(column[cell.row]);
      column[cell.row] = true;
    }
    // After whole periods no data cell is empty below the highest row in use.
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs)
      for (Row row = 0; row < seen[lfs].size(); ++row) REQUIRE(seen[lfs][row] != layout.is_parity({lfs, row}));
  }
}

TEST_CASE("locating is inverted for any layout and any record that fits 60 bits") {
  REQUIRE(rc::check([] {
    const Layout layout = arbitrary_layout();
    const auto n = *rc::gen::inRange<RecordNumber>(0, RecordNumber{1} << 60);
    const Cell cell = layout.locate(n);
    RC_ASSERT(cell.lfs < layout.width());
    RC_ASSERT(layout.record_at(cell) == n);
    RC_ASSERT(!layout.is_parity(cell));
  }));
}

TEST_CASE("a data cell is a member of its parity cell's group, and of no other") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::map<std::pair<LfsIndex, Row>, unsigned> groups_of;
    const Row rows = 3 * *std::max_element(sizes.begin(), sizes.end());
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      for (Row row = 0; row < rows; ++row) {
        if (!layout.is_parity({lfs, row})) {
          const auto members = layout.members_of(layout.parity_of({lfs, row}));
          REQUIRE(std::count(members.begin(), members.end(), Cell{lfs, row}) == 1);
          continue;
        }
        for (const Cell member : layout.members_of({lfs, row})) {
          REQUIRE(layout.parity_of(member) == Cell{lfs, row});
          ++groups_of[{member.lfs, member.row}];
        }
      }
    }
    for (const auto& [cell, groups] : groups_of) REQUIRE(groups == 1);
  }
}

TEST_CASE("a parity group has B - 1 members on B - 1 LFSs of the companion bevy, by rising row") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const auto [bevy, size] = bevy_of(sizes, lfs);
      for (Row row = lfs - first_of(sizes, bevy); row < 4 * size; row += size) {
        const auto members = layout.members_of({lfs, row});
        REQUIRE(members.size() == size - 1);
        for (std::size_t i = 0; i < members.size(); ++i) {
          REQUIRE(bevy_of(sizes, members[i].lfs).first == (bevy + sizes.size() / 2) % sizes.size());
          REQUIRE_FALSE(layout.is_parity(members[i]));
          for (std::size_t j = 0; j < i; ++j) {
            REQUIRE(members[i].lfs != members[j].lfs);
            REQUIRE(members[j].row <= members[i].row);
          }
        }
      }
    }
  }
}

TEST_CASE("three records on two bevies of four put parity in row 1 of LFS 5 and row 2 of LFS 6, above missing cells") {
  const Layout layout = layout_of({4, 4});
  std::vector<Cell> parity;
  for (RecordNumber n = 0; n < 3; ++n) parity.push_back(layout.parity_of(layout.locate(n)));
  CHECK(parity == std::vector<Cell>{{4, 0}, {5, 1}, {6, 2}});
  for (LfsIndex lfs = 0; lfs < 8; ++lfs) {
    const bool holds = lfs >= 1 && lfs <= 3;
    CHECK(layout.data_rows(lfs, 3) == (holds ? 1 : 0));
    CHECK(layout.rows(lfs, 3) == (holds ? 1 : 0));
  }
}

TEST_CASE("rows and data rows of a prefix agree with counting") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    CAPTURE(sizes);
    std::vector<std::uint64_t> highest(layout.width()), held(layout.width());
    const std::uint64_t records = two_periods(layout);
    for (std::uint64_t count = 0; count <= records; ++count) {
      for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
        REQUIRE(layout.data_rows(lfs, count) == held[lfs]);
        REQUIRE(layout.rows(lfs, count) == highest[lfs]);
      }
      const Cell next = layout.locate(count);
      highest[next.lfs] = next.row + 1;  // an LFS's rows rise with the record numbers
      ++held[next.lfs];
    }
  }
}

TEST_CASE("rows of a range are the tight stretch that a walk over its records finds") {
  REQUIRE(rc::check([] {
    const Layout layout = arbitrary_layout();
    const auto begin = *rc::gen::inRange<RecordNumber>(0, 100000);
    const Range range{begin, begin + *rc::gen::inRange<std::uint64_t>(0, 4 * layout.width())};
    std::vector<Range> walked(layout.width(), Range{~Row{0}, 0});
    for (RecordNumber n = range.begin; n < range.end; ++n) {
      const Cell cell = layout.locate(n);
      walked[cell.lfs] = {std::min(walked[cell.lfs].begin, cell.row), std::max(walked[cell.lfs].end, cell.row + 1)};
    }
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const Range rows = layout.rows(lfs, range);
      if (walked[lfs].empty())
        RC_ASSERT(rows.begin == rows.end);
      else
        RC_ASSERT(rows == walked[lfs]);
    }
  }));
}

TEST_CASE("neighbouring ranges give neighbouring rows: every data row of an LFS is in exactly one") {
  REQUIRE(rc::check([] {
    const Layout layout = arbitrary_layout();
    const auto lfs = *rc::gen::inRange<LfsIndex>(0, layout.width());
    Row expected = layout.next_data_row(lfs, 0);
    RecordNumber begin = 0;
    for (int i = 0; i < 20; ++i) {
      const RecordNumber end = begin + *rc::gen::inRange<std::uint64_t>(0, 3 * layout.width());
      const Range rows = layout.rows(lfs, Range{begin, end});
      RC_ASSERT(rows.begin == expected);
      if (!rows.empty()) expected = layout.next_data_row(lfs, rows.end);
      begin = end;
    }
  }));
}

TEST_CASE("a range that ends before it begins has no rows") {
  CHECK(layout_of({4, 4}).rows(2, Range{40, 7}).empty());
  CHECK(Layout::make(8).value().rows(2, Range{40, 7}).empty());
}

TEST_CASE("the next data row skips parity cells only") {
  for (const auto& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs)
      for (Row row = 0; row < 40; ++row) {
        Row walked = row;
        while (layout.is_parity({lfs, walked})) ++walked;
        REQUIRE(layout.next_data_row(lfs, row) == walked);
      }
  }
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
