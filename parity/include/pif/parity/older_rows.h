// Rows of files with bevies that releases before parity made (docs/FORMAT.md "Older files"): components there have an
// empty row for each parity cell, so that their row r is cell (r, c) of the thesis; c = r mod B is empty. Rows as the
// rest of the program knows them are dense (layout.h). This is the one place that says which is which.
// Pure; values; any thread.
#pragma once

#include <cstdint>

#include "pif/base/assert.h"
#include "pif/base/ids.h"
#include "pif/parity/layout.h"

namespace pif::parity {

class OlderRows {
 public:
  // size: of the bevy, at least 2. column: of the LFS in its bevy, below size.
  constexpr OlderRows(std::uint32_t size, std::uint32_t column) : size_(size), column_(column) {
    PIF_ASSERT(size >= 2 && column < size, size, column);
  }
  // layout: with bevies. lfs: below its width.
  static OlderRows of(const Layout& layout, LfsIndex lfs) {
    std::uint32_t column = lfs;
    for (const std::uint32_t size : layout.bevies()) {
      if (column < size) return {size, column};
      column -= size;
    }
    PIF_ASSERT(false, lfs, layout.width());
    return {2, 0};
  }

  // Where a row is stored.
  constexpr Row stored(Row row) const {
    const std::uint64_t offset = row % (size_ - 1);
    return row / (size_ - 1) * size_ + offset + (offset >= column_ ? 1 : 0);
  }
  // So many rows are stored for the first `rows` ones: the empty ones between them, and none behind the last.
  constexpr std::uint64_t stored_count(std::uint64_t rows) const { return rows == 0 ? 0 : stored(rows - 1) + 1; }
  constexpr bool is_empty(Row stored) const { return stored % size_ == column_; }
  // So many of the first `stored` stored ones are rows.
  constexpr std::uint64_t count(std::uint64_t stored) const {
    return stored - (stored > column_ ? (stored - column_ - 1) / size_ + 1 : 0);
  }

 private:
  std::uint32_t size_;
  std::uint32_t column_;
};

}  // namespace pif::parity
