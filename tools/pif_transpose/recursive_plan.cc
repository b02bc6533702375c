#include "recursive_plan.h"

#include <algorithm>
#include <numeric>

#include "pif/parity/period.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kBandsInMemory = 3;  // one that is gathered, its transpose, and the next one

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::uint64_t memory_of(const RecursivePlan& plan, const parity::Layout& from) {
  return kBandsInMemory * from.width() * plan.band * plan.row_bytes() + plan.rows * sizeof(std::uint64_t);
}

RecursivePlan plan_recursive(const Shape& shape, const parity::Layout& from, std::uint64_t memory) {
  RecursivePlan plan;
  plan.shape = shape;
  plan.skipped = shape.columns.begin - shape.columns.begin / shape.element.per_byte() * shape.element.per_byte();
  const std::uint64_t size = std::max(shape.row_count(), plan.skipped + shape.column_count());
  const std::uint64_t unit = std::lcm(parity::period_of(from), std::uint64_t{shape.element.per_byte()});
  for (plan.passes = 0;; ++plan.passes) {
    const std::uint64_t pieces = std::uint64_t{1} << plan.passes;
    plan.band = round_up((size + pieces - 1) / pieces, unit);
    plan.rows = plan.band * pieces;
    const bool fits = kBandsInMemory * from.width() * plan.band * plan.row_bytes() <= memory;
    if (fits || plan.band == unit) return plan;
  }
}

}  // namespace pif::transpose
