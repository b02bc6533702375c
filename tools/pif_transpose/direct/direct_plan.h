// How a direct transpose goes about it: which columns at once, in how much memory. Pure; all workers come to the same
// plan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "matrix/shape.h"
#include "pif/parity/layout.h"

namespace pif::transpose {

// Columns that are transposed at once, of all rows; the first stripe begins at a byte, which may be before the first
// column that is wanted.
struct Stripe {
  Range columns;              // of the matrix
  Range records;              // of the output
  std::uint64_t skipped = 0;  // columns of its first byte that are not wanted
};

struct DirectPlan {
  Shape shape;
  std::uint64_t stripe_columns = 0;  // at most; they begin and end with bytes
  std::uint64_t slots = 0;           // rows that one destination makes of a stripe, at most
  std::size_t pitch = 0;             // of pieces in a window
  std::size_t batch_bytes = 0;       // of rows that are read at once, at most

  std::uint64_t stripe_count() const;
  Stripe stripe(std::uint64_t i) const;
  // Rows that a worker of so many threads reads at once, of a stripe.
  std::uint64_t rows_at_once(unsigned threads) const;
  // The amount worked on at once, rather than more.
  std::size_t cached_bytes() const;
  // A destination's window: for each LFS of the input, a piece for each of its slots.
  std::size_t window_bytes(std::uint32_t sources) const { return sources * slots * pitch + sizeof(std::uint64_t); }
  std::size_t place_of(std::uint32_t source, std::uint64_t slot) const { return (source * slots + slot) * pitch; }
};

// memory: of all `workers` together.
// Bytes of its windows, all workers together: more than was asked for where not even the fewest columns fit.
std::uint64_t window_bytes(const DirectPlan& plan, const parity::Layout& from);

DirectPlan plan_direct(const Shape& shape, const parity::Layout& from, const parity::Layout& to, std::uint32_t workers,
                       std::uint64_t memory);

}  // namespace pif::transpose
