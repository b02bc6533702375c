#include "pif/base/placement.h"

#include <algorithm>
#include <set>
#include <vector>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace pif {
namespace {

Placement arbitrary_placement() {
  return Placement(*rc::gen::inRange<std::uint32_t>(1, 20), *rc::gen::inRange<std::uint64_t>(1, 9));
}

TEST_CASE("records go round the LFSs one by one") {
  const Placement placement(3);
  CHECK(placement.locate(0) == Cell{0, 0});
  CHECK(placement.locate(1) == Cell{1, 0});
  CHECK(placement.locate(2) == Cell{2, 0});
  CHECK(placement.locate(3) == Cell{0, 1});
  CHECK(placement.record_at({2, 5}) == 17);
}

TEST_CASE("with a block factor runs of that many records stay together") {
  const Placement placement(2, 3);
  const std::vector<Cell> expected = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {0, 4}};
  for (RecordNumber n = 0; n < expected.size(); ++n) CHECK(placement.locate(n) == expected[n]);
}

TEST_CASE("record_at inverts locate for any record, width and block factor") {
  REQUIRE(rc::check([] {
    const Placement placement = arbitrary_placement();
    const auto n = *rc::gen::inRange<RecordNumber>(0, RecordNumber{1} << 60);
    RC_ASSERT(placement.locate(n).lfs < placement.width());
    RC_ASSERT(placement.record_at(placement.locate(n)) == n);
  }));
}

TEST_CASE("p consecutive records, or blocks of them, are on p different LFSs") {
  REQUIRE(rc::check([] {
    const Placement placement = arbitrary_placement();
    const auto first = *rc::gen::inRange<RecordNumber>(0, 10000);
    std::set<LfsIndex> used;
    for (std::uint32_t i = 0; i < placement.width(); ++i)
      used.insert(placement.locate(first + i * placement.block()).lfs);
    RC_ASSERT(used.size() == placement.width());
  }));
}

// Appending never moves a record and never leaves a gap: record N takes the row after the last one of its LFS.
TEST_CASE("rows of a prefix agree with appending records one by one") {
  REQUIRE(rc::check([] {
    const Placement placement = arbitrary_placement();
    std::vector<std::uint64_t> rows(placement.width());
    for (RecordNumber n = 0; n < 3 * placement.width() * placement.block(); ++n) {
      for (LfsIndex lfs = 0; lfs < placement.width(); ++lfs) RC_ASSERT(placement.rows(lfs, n) == rows[lfs]);
      const Cell next = placement.locate(n);
      RC_ASSERT(next.row == rows[next.lfs]);
      ++rows[next.lfs];
    }
  }));
}

TEST_CASE("without a block factor LFS k of N records holds N/p rows, and one more if k < N mod p") {
  REQUIRE(rc::check([] {
    const Placement placement(*rc::gen::inRange<std::uint32_t>(1, 100));
    const auto records = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 60);
    const auto lfs = *rc::gen::inRange<LfsIndex>(0, placement.width());
    const std::uint64_t p = placement.width();
    RC_ASSERT(placement.rows(lfs, records) == records / p + (lfs < records % p ? 1 : 0));
  }));
}

TEST_CASE("the rows of a range are those of its records and nothing else") {
  REQUIRE(rc::check([] {
    const Placement placement = arbitrary_placement();
    const auto begin = *rc::gen::inRange<RecordNumber>(0, 10000);
    const Range range{begin, begin + *rc::gen::inRange<std::uint64_t>(0, 200)};
    std::vector<std::vector<Row>> walked(placement.width());
    for (RecordNumber n = range.begin; n < range.end; ++n) {
      const Cell cell = placement.locate(n);
      walked[cell.lfs].push_back(cell.row);
    }
    for (LfsIndex lfs = 0; lfs < placement.width(); ++lfs) {
      const Range rows = placement.rows(lfs, range);
      RC_ASSERT(rows.size() == walked[lfs].size());
      for (std::size_t i = 0; i < walked[lfs].size(); ++i) RC_ASSERT(walked[lfs][i] == rows.begin + i);
    }
  }));
}

TEST_CASE("an empty or inverted range of records has an empty range of rows") {
  const Placement placement(4, 2);
  CHECK(placement.rows(1, Range{9, 9}) == Range{2, 2});
  CHECK(placement.rows(1, Range{50, 9}).empty());
  CHECK(placement.rows(1, Range{50, 9}).begin == placement.rows(1, Range{50, 9}).end);
}

}  // namespace
}  // namespace pif
