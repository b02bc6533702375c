#include "pif/access/row_range.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::access {

void split(const parity::Layout& layout, Range records, std::vector<RowRange>& out) {
  out.clear();
  if (records.empty()) return;
  const std::uint32_t width = layout.width();
  if (layout.is_even()) {
    const std::uint64_t used = std::min<std::uint64_t>(width, records.size());
    for (std::uint64_t i = 0; i < used; ++i) {
      const RecordNumber first = records.begin + i;
      const Cell cell = layout.locate(first);
      out.push_back({cell.lfs, cell.row, (records.size() - i - 1) / width + 1, first, true});
    }
    return;
  }
  for (LfsIndex lfs = 0; lfs < width; ++lfs) {
    const Range rows = layout.rows(lfs, records);
    if (rows.empty()) continue;
    out.push_back({lfs, rows.begin, rows.size(), layout.record_at({lfs, rows.begin}), rows.size() == 1});
  }
  std::sort(out.begin(), out.end(), [](const RowRange& a, const RowRange& b) { return a.record < b.record; });
}

RowRange part_of(const parity::Layout& layout, const RowRange& range, std::uint64_t begin, std::uint64_t rows) {
  PIF_ASSERT(begin <= range.rows && rows <= range.rows - begin, begin, rows, range.rows);
  RowRange part = range;
  part.row += begin;
  part.rows = rows;
  part.record = record_of(layout, range, begin);
  return part;
}

std::vector<RowRange> pieces_of(const parity::Layout& layout, const RowRange& range, std::uint64_t rows_max) {
  PIF_ASSERT(rows_max > 0, rows_max);
  std::vector<RowRange> pieces;
  for (std::uint64_t begin = 0; begin < range.rows; begin += rows_max)
    pieces.push_back(part_of(layout, range, begin, std::min(rows_max, range.rows - begin)));
  return pieces;
}

}  // namespace pif::access
