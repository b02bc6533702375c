// Which rows of which LFS a batch of records is.
#include <set>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "pif/access/row_range.h"

using namespace pif;
using namespace pif::access;

namespace {

parity::Layout any_layout() {
  const auto width = *rc::gen::inRange<std::uint32_t>(1, 13);
  if (width % 4 == 0 && *rc::gen::arbitrary<bool>()) {
    return *parity::Layout::make(width, std::vector<std::uint32_t>(2, width / 2));
  }
  return *parity::Layout::make(width);
}

Range any_records() {
  const auto first = *rc::gen::inRange<std::uint64_t>(0, 1000);
  return {first, first + *rc::gen::inRange<std::uint64_t>(0, 200)};
}

}  // namespace

TEST_CASE("the ranges of a batch hold each of its records exactly once, where the layout says") {
  REQUIRE(rc::check([] {
    const auto layout = any_layout();
    const Range records = any_records();
    std::vector<RowRange> ranges;
    split(layout, records, ranges);
    std::set<RecordNumber> seen;
    for (const RowRange& range : ranges) {
      RC_ASSERT(range.rows > 0);
      for (std::uint64_t i = 0; i < range.rows; ++i) {
        const RecordNumber record = record_of(layout, range, i);
        RC_ASSERT(record == layout.record_at({range.lfs, range.row + i}));
        RC_ASSERT(seen.insert(record).second);
      }
    }
    RC_ASSERT(seen.size() == records.size());
    if (!seen.empty()) RC_ASSERT(*seen.begin() == records.begin && *seen.rbegin() == records.end - 1);
  }));
}

TEST_CASE("a part of a range holds the records of those rows") {
  REQUIRE(rc::check([] {
    const auto layout = any_layout();
    Range records = any_records();
    records.end = std::max(records.end, records.begin + 1);
    std::vector<RowRange> ranges;
    split(layout, records, ranges);
    const RowRange& range = ranges[*rc::gen::inRange<std::size_t>(0, ranges.size())];
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, range.rows);
    const auto rows = *rc::gen::inRange<std::uint64_t>(1, range.rows - begin + 1);
    const RowRange piece = part_of(layout, range, begin, rows);
    RC_ASSERT(piece.row == range.row + begin && piece.rows == rows);
    for (std::uint64_t i = 0; i < rows; ++i)
      RC_ASSERT(record_of(layout, piece, i) == record_of(layout, range, begin + i));
  }));
}

TEST_CASE("pieces follow one another, cover the range, and are no longer than asked") {
  REQUIRE(rc::check([] {
    const auto layout = any_layout();
    Range records = any_records();
    records.end = std::max(records.end, records.begin + 1);
    const auto rows_max = *rc::gen::inRange<std::uint64_t>(1, 9);
    std::vector<RowRange> ranges;
    split(layout, records, ranges);
    for (const RowRange& range : ranges) {
      std::uint64_t begin = 0;
      for (const RowRange& piece : pieces_of(layout, range, rows_max)) {
        RC_ASSERT(piece.rows >= 1 && piece.rows <= rows_max);
        RC_ASSERT(piece == part_of(layout, range, begin, piece.rows));
        begin += piece.rows;
      }
      RC_ASSERT(begin == range.rows);
    }
  }));
}
