// Which rows of which LFS a batch of records is. Pure; any thread.
#pragma once

#include <vector>

#include "pif/base/ids.h"
#include "pif/parity/layout.h"

namespace pif::access {

// One LFS's part of a batch: `rows` rows from `row`.
// If it is `even`, row i holds record `record + i * width`: in the user's memory its rows lie width records apart. With
// bevies the distance varies: record_of() asks the layout.
struct RowRange {
  LfsIndex lfs = 0;
  Row row = 0;
  std::uint64_t rows = 0;
  RecordNumber record = 0;  // in `row`
  bool even = true;

  bool operator==(const RowRange&) const = default;
};

// The rows of `records`, a range for each LFS that has any, in the order of their first records. `out` is replaced.
void split(const parity::Layout& layout, Range records, std::vector<RowRange>& out);

// The record in row `range.row + i` (i < range.rows).
inline RecordNumber record_of(const parity::Layout& layout, const RowRange& range, std::uint64_t i) {
  if (range.even) return range.record + i * layout.width();
  return layout.record_at({range.lfs, range.row + i});
}

// The part of `range` from its row `begin` (counted from its first), `rows` long, which must be inside.
RowRange part_of(const parity::Layout& layout, const RowRange& range, std::uint64_t begin, std::uint64_t rows);

// The pieces of `range`, each at most `rows_max` >= 1 long, in order.
std::vector<RowRange> pieces_of(const parity::Layout& layout, const RowRange& range, std::uint64_t rows_max);

}  // namespace pif::access
