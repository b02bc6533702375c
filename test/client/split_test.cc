// Which rows of which LFS a batch of records is.
#include <set>

#include <catch2/catch.hpp>
#include <rapidcheck.h>

#include "../../client/src/file/split.h"

using namespace pif;
using namespace pif::client;

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

TEST_CASE("the shares of a batch hold each of its records exactly once, where the layout says") {
  REQUIRE(rc::check([] {
    const auto layout = any_layout();
    const Range records = any_records();
    std::vector<Share> shares;
    split(layout, records, shares);
    std::set<RecordNumber> seen;
    for (const Share& share : shares) {
      RC_ASSERT(share.rows > 0);
      for (std::uint64_t i = 0; i < share.rows; ++i) {
        const auto record = record_of(layout, share, i);
        RC_ASSERT(record == layout.record_at({share.lfs, share.row + i}));
        if (record) RC_ASSERT(seen.insert(*record).second);
      }
    }
    RC_ASSERT(seen.size() == records.size());
    if (!seen.empty()) RC_ASSERT(*seen.begin() == records.begin && *seen.rbegin() == records.end - 1);
  }));
}

TEST_CASE("a part of a share holds the records of those rows") {
  REQUIRE(rc::check([] {
    const auto layout = any_layout();
    Range records = any_records();
    records.end = std::max(records.end, records.begin + 1);
    std::vector<Share> shares;
    split(layout, records, shares);
    const Share& share = shares[*rc::gen::inRange<std::size_t>(0, shares.size())];
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, share.rows);
    const auto rows = *rc::gen::inRange<std::uint64_t>(1, share.rows - begin + 1);
    const Share piece = part_of(layout, share, begin, rows);
    RC_ASSERT(piece.row == share.row + begin && piece.rows == rows);
    for (std::uint64_t i = 0; i < rows; ++i) RC_ASSERT(record_of(layout, piece, i) == record_of(layout, share, begin + i));
  }));
}

TEST_CASE("data stretches hold all records of a share, no parity cell, and are no longer than asked") {
  REQUIRE(rc::check([] {
    const auto layout = any_layout();
    Range records = any_records();
    records.end = std::max(records.end, records.begin + 1);
    const auto rows_max = *rc::gen::inRange<std::uint64_t>(1, 9);
    std::vector<Share> shares, stretches;
    split(layout, records, shares);
    for (const Share& share : shares) {
      data_stretches(layout, share, rows_max, stretches);
      std::uint64_t found = 0;
      for (const Share& stretch : stretches) {
        RC_ASSERT(stretch.rows >= 1 && stretch.rows <= rows_max);
        for (std::uint64_t i = 0; i < stretch.rows; ++i) {
          const auto record = record_of(layout, stretch, i);
          RC_ASSERT(record && *record >= records.begin && *record < records.end);
          ++found;
        }
      }
      std::uint64_t expected = 0;
      for (std::uint64_t i = 0; i < share.rows; ++i) expected += record_of(layout, share, i).has_value();
      RC_ASSERT(found == expected);
    }
  }));
}
