// How the recursive transpose goes about it. Dibble 1990, 5.4.1: a square of K rows is transposed by halves down to
// grains of b elements, b rows of which fit into memory; K = b 2 ^ passes. A matrix that is no square is several of
// them side by side, or one below another: as many as cover it with the fewest elements. All of them are transposed at
// once, because a pass exchanges grains of rows r and r + k, whatever square a row or a grain is in. Their cells beyond
// the matrix are zeros that nobody sees.
//
// b is a multiple of the layout's period. So row r and rows r + k and r - k, with which it exchanges grains, are on one
// LFS, and only bands move between LFSs: the rows with one place in their squares' b rows, of all squares below one
// another, and of `blocks` squares side by side. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "matrix/shape.h"
#include "pif/base/assert.h"
#include "pif/parity/layout.h"

namespace pif::transpose {

struct RecursivePlan {
  Shape shape;
  std::uint64_t skipped = 0;  // columns before the first that is wanted, because rows begin with a byte
  std::uint64_t side = 0;     // K
  std::uint64_t down = 0;     // squares below one another
  std::uint64_t across = 0;   // and side by side
  std::uint64_t band = 0;     // b: rows of a band, elements of its grains
  std::uint32_t passes = 0;
  std::uint64_t blocks = 1;  // squares side by side whose rows travel together, at most

  // Sizes of the squares together.
  std::uint64_t rows() const { return down * side; }
  std::uint64_t columns() const { return across * side; }
  std::uint64_t row_bytes() const { return columns() * shape.element.bits / 8; }
  std::uint64_t grain_bytes(std::uint64_t grain) const { return grain * shape.element.bits / 8; }
  // Rows that are kept: without a pass, nothing comes into rows that the matrix does not have.
  std::uint64_t kept_rows() const { return passes == 0 ? shape.row_count() : rows(); }
  // Bytes of all scratch files. A pass has half of each row in one, and half in another.
  std::uint64_t scratch_bytes() const { return (passes == 0 ? 1 : 2) * kept_rows() * row_bytes(); }

  // Columns of the matrix, with those that are skipped.
  std::uint64_t column_end() const { return skipped + shape.column_count(); }
  // After the passes, row i of a band has in each square a grain for each b rows of the matrix, of its i-th row there.
  // Grains behind these are zeros, as are the bytes of a grain behind the matrix's last column.
  std::uint64_t grains() const { return side / band; }  // of a row, in a square
  std::uint64_t used_grains(std::uint64_t square, std::uint64_t i) const {
    const std::uint64_t first = square * side + i;
    return first < shape.row_count() ? std::min((shape.row_count() - first + band - 1) / band, grains()) : 0;
  }
  // Bytes of a band's row, transposed or not, in memory: whole grains of all rows of the matrix.
  std::uint64_t band_row_bytes() const { return grain_bytes((shape.row_count() + band - 1) / band * band); }

  // Bands are numbered so that those of the first `blocks` squares come first.
  struct Band {
    std::uint64_t place = 0;  // in a square: its rows begin with place * b
    std::uint64_t first = 0;  // square of those side by side
    std::uint64_t count = 0;  // of these
  };
  std::uint64_t band_count() const;
  Band band_of(std::uint64_t number) const;
  // The columns of the matrix that become a band's rows in one of its squares: none, perhaps.
  Range columns_of(const Band& of, std::uint64_t square) const {
    const std::uint64_t begin = square * side + of.place * band;
    return {std::min(begin, column_end()), std::min(begin + band, column_end())};
  }
};

// Bytes of bands and row numbers, all workers together: more than was asked for where not even the smallest band fits.
std::uint64_t memory_of(const RecursivePlan& plan, const parity::Layout& from);

// memory: of all workers together, for three bands of each.
RecursivePlan plan_recursive(const Shape& shape, const parity::Layout& from, std::uint64_t memory);

}  // namespace pif::transpose
