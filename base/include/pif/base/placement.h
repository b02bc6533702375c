// Where records live without parity. Dibble 1990, section 2.3:  lfs(n) = n mod p,  row(n) = n / p,  n = row * p + lfs.
// With a block factor m (scratch files interleaved by blocks), runs of m records stay together: block(n) = n / m goes
// where record block(n) would.
// This file and pif/parity/layout.h are the only places that compute a placement. Pure; any thread.
#pragma once

#include <cstdint>

#include "pif/base/ids.h"

namespace pif {

// One place for one record.
struct Cell {
  LfsIndex lfs = 0;
  Row row = 0;
  constexpr bool operator==(const Cell&) const = default;
};

class Placement {
 public:
  // width >= 1, block >= 1.
  constexpr explicit Placement(std::uint32_t width, std::uint64_t block = 1) : width_(width), block_(block) {}

  // LFSs of the file, and consecutive records that stay together on one of them.
  constexpr std::uint32_t width() const { return width_; }
  constexpr std::uint64_t block() const { return block_; }

  // Where record n is, and which record is there (cell.lfs < width()): inverse to one another, for any number.
  constexpr Cell locate(RecordNumber n) const {
    const std::uint64_t b = n / block_;
    return {static_cast<LfsIndex>(b % width_), b / width_ * block_ + n % block_};
  }
  constexpr RecordNumber record_at(Cell cell) const {
    return (cell.row / block_ * width_ + cell.lfs) * block_ + cell.row % block_;
  }
  // Rows that LFS `lfs` < width() holds of the first `records` records.
  std::uint64_t rows(LfsIndex lfs, std::uint64_t records) const;
  // The rows of `lfs` that hold records of `range`: contiguous. Empty ranges come back as {x, x}.
  Range rows(LfsIndex lfs, Range range) const {
    return {rows(lfs, range.begin), rows(lfs, range.empty() ? range.begin : range.end)};
  }

 private:
  std::uint32_t width_;
  std::uint64_t block_;
};

}  // namespace pif
