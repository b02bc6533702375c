#include "recursive/recursive_plan.h"

#include <numeric>

#include "pif/parity/period.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kBandsInMemory = 3;       // one that is gathered, its transpose, and the next one
constexpr std::uint64_t kBlocksBytes = 4u << 20;  // of what travels together, where squares are small
constexpr std::uint64_t kBandsOfEach = 4;         // bands of a worker at least, before they are of several squares

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

// The side of squares that cover so many rows or columns by so many with the fewest elements: of the shorter side, or
// of one square less, each a little longer.
std::uint64_t square_side(std::uint64_t shorter, std::uint64_t longer) {
  const std::uint64_t count = longer / shorter, stretched = divide_up(longer, count);
  const auto area = [](std::uint64_t squares, std::uint64_t side) {
    return static_cast<double>(squares) * static_cast<double>(side) * static_cast<double>(side);
  };
  return area(count, stretched) <= area(divide_up(longer, shorter), shorter) ? stretched : shorter;
}

std::uint64_t bytes_in_memory(const RecursivePlan& plan, const parity::Layout& from) {
  return kBandsInMemory * from.width() * plan.blocks * plan.band * plan.band_row_bytes();
}

// Of squares so small that a message for each would cost more than its bytes.
std::uint64_t blocks_of(const RecursivePlan& plan, const parity::Layout& from, std::uint64_t memory) {
  const std::uint64_t one = bytes_in_memory(plan, from);
  const std::uint64_t most = std::min(memory / one, kBlocksBytes / (plan.band * plan.band_row_bytes()));
  return std::max<std::uint64_t>(std::min(most, plan.across / (kBandsOfEach * from.width())), 1);
}

}  // namespace

std::uint64_t RecursivePlan::band_count() const {
  const std::uint64_t square = (across - 1) / blocks * blocks;  // the first one of the last bands
  const std::uint64_t last = std::min(column_end() - square * side, side);
  return square / blocks * grains() + divide_up(last, band);
}

RecursivePlan::Band RecursivePlan::band_of(std::uint64_t number) const {
  PIF_ASSERT(number < band_count(), number, band_count());
  const std::uint64_t first = number / grains() * blocks;
  return {number % grains(), first, std::min(blocks, across - first)};
}

std::uint64_t memory_of(const RecursivePlan& plan, const parity::Layout& from) {
  return bytes_in_memory(plan, from) + plan.kept_rows() * sizeof(std::uint64_t);
}

RecursivePlan plan_recursive(const Shape& shape, const parity::Layout& from, std::uint64_t memory) {
  RecursivePlan plan;
  plan.shape = shape;
  plan.skipped = shape.columns.begin - shape.columns.begin / shape.element.per_byte() * shape.element.per_byte();
  const std::uint64_t rows = std::max<std::uint64_t>(shape.row_count(), 1);
  const std::uint64_t columns = std::max<std::uint64_t>(plan.column_end(), 1);
  const std::uint64_t size = square_side(std::min(rows, columns), std::max(rows, columns));
  const std::uint64_t unit = std::lcm(parity::period_of(from), std::uint64_t{shape.element.per_byte()});
  for (plan.passes = 0;; ++plan.passes) {
    const std::uint64_t pieces = std::uint64_t{1} << plan.passes;
    plan.band = divide_up(divide_up(size, pieces), unit) * unit;
    plan.side = plan.band * pieces;
    plan.down = divide_up(rows, plan.side);
    plan.across = divide_up(columns, plan.side);
    if (bytes_in_memory(plan, from) <= memory || plan.band == unit) break;
  }
  plan.blocks = blocks_of(plan, from, memory);
  return plan;
}

}  // namespace pif::transpose
