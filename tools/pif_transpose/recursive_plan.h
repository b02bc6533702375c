// How the recursive transpose goes about it. Dibble 1990, 5.4.1: a square of N rows is transposed by halves down to
// grains of b elements, b rows of which fit into memory. N = b 2 ^ passes is as large as the matrix needs; what it has
// more than that are zeros that nobody sees. b is a multiple of the layout's period. So row r and rows r + k and r - k,
// with which it exchanges grains, are on one LFS, and only the bands move between LFSs. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pif/base/assert.h"
#include "pif/parity/layout.h"
#include "shape.h"

namespace pif::transpose {

struct RecursivePlan {
  Shape shape;
  std::uint64_t skipped = 0;  // columns before the first that is wanted, because rows begin with a byte
  std::uint64_t rows = 0;     // N
  std::uint64_t band = 0;     // b: rows of a band, elements of its grains
  std::uint32_t passes = 0;

  std::uint64_t row_bytes() const { return rows * shape.element.bits / 8; }
  std::uint64_t grain_bytes(std::uint64_t grain) const { return grain * shape.element.bits / 8; }
  // After the passes, row i of a band has a grain for each b rows of the matrix, of its i-th row there. Grains behind
  // these are zeros, as are the bytes of a grain behind the matrix's last column.
  std::uint64_t used_grains(std::uint64_t i) const {
    return i < shape.row_count() ? (shape.row_count() - i + band - 1) / band : 0;
  }
  std::uint64_t used_bytes(std::uint64_t band_number) const;  // of each grain
  // Bands whose rows are rows of the output.
  std::uint64_t band_count() const { return (skipped + shape.column_count() + band - 1) / band; }
};

inline std::uint64_t RecursivePlan::used_bytes(std::uint64_t band_number) const {
  PIF_ASSERT(band_number < band_count(), band_number, band_count());
  return shape.element.bytes_of(std::min(band, skipped + shape.column_count() - band_number * band));
}

// What bands and row numbers take, all workers together: more than was asked for where not even the smallest band fits.
std::uint64_t memory_of(const RecursivePlan& plan, const parity::Layout& from);

// memory: of all workers together, for three bands of each.
RecursivePlan plan_recursive(const Shape& shape, const parity::Layout& from, std::uint64_t memory);

}  // namespace pif::transpose
