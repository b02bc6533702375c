// Which rows of which LFS a batch of records is. Pure.
#pragma once

#include <optional>
#include <vector>

#include "pif/base/ids.h"
#include "pif/parity/layout.h"

namespace pif::client {

// One LFS's part of a batch: `rows` rows from `row`.
// Without bevies ("even") row i holds record `record + i * width`: in the user's memory its rows lie width records apart.
// With bevies parity cells are among the rows, so that the distance varies: record_of() asks the layout.
struct Share {
  LfsIndex lfs = 0;
  Row row = 0;
  std::uint64_t rows = 0;
  RecordNumber record = 0;  // in `row`
  bool even = true;

  bool operator==(const Share&) const = default;
};

// The shares of `records`, one for each LFS that has any, in the order of their first records. `out` is replaced.
void split(const parity::Layout& layout, Range records, std::vector<Share>& out);

// The record in row `share.row + i`, or nothing for a parity cell.
inline std::optional<RecordNumber> record_of(const parity::Layout& layout, const Share& share, std::uint64_t i) {
  if (share.even) return share.record + i * layout.width();
  return layout.record_at({share.lfs, share.row + i});
}

// The part of `share` from its row `begin` (counted from its first), `rows` long. With bevies it may begin with a parity
// cell; then `record` means nothing.
Share part_of(const parity::Layout& layout, const Share& share, std::uint64_t begin, std::uint64_t rows);

// The stretches of `share` without parity cells, each at most `rows_max` long, in order.
void data_stretches(const parity::Layout& layout, const Share& share, std::uint64_t rows_max, std::vector<Share>& out);

}  // namespace pif::client
