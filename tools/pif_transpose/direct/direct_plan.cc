#include "direct/direct_plan.h"

#include <algorithm>

#include "pif/matrix/transpose.h"

namespace pif::transpose {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kBatchBytesMin = 256u << 10, kBatchBytesMax = 8u << 20, kCachedBytes = 1u << 20;
// Pieces of one batch for one destination are one message. Rows that are shorter than a byte take one each there.
constexpr std::uint64_t kStripeMax = 7u << 20;
// More of them would only be more memory to clear, and the disks would begin to write later.
constexpr std::uint64_t kWindowsMax = 512u << 20;
// Memory that two processes see counts for both.
constexpr std::uint64_t kTimesCounted = 2;

std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) { return value / unit * unit; }
std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return round_down(value + unit - 1, unit); }

// Whole lines for pieces of some length, and an odd number of them, or many would want the same places in the cache.
std::size_t pitch_for(std::uint64_t bytes) {
  if (bytes < 8 * kLine) return round_up(bytes, sizeof(std::uint64_t));
  return (round_up(bytes, kLine) / kLine | 1) * kLine;
}

std::uint64_t longest_piece(const Shape& shape, const parity::Layout& from) {
  std::uint64_t most = 0;
  for (LfsIndex lfs = 0; lfs < from.width(); ++lfs) most = std::max(most, from.rows(lfs, shape.rows).size());
  return shape.element.bytes_of(most);
}

// A multiple of the columns that a tile is wide, where there is room for a few tiles.
std::uint64_t whole_tiles(std::uint64_t columns, matrix::Element element) {
  const std::uint64_t tile = matrix::tile_elements(element);
  return std::max<std::uint64_t>(round_down(columns, columns < 4 * tile ? element.per_byte() : tile),
                                 element.per_byte());
}

std::uint64_t most_slots(const DirectPlan& plan, const parity::Layout& to) {
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < plan.stripe_count(); ++i) {
    const Range records = plan.stripe(i).records;
    for (LfsIndex lfs = 0; lfs < to.width(); ++lfs) most = std::max(most, to.rows(lfs, records).size());
  }
  return most;
}

}  // namespace

std::uint64_t window_bytes(const DirectPlan& plan, const parity::Layout& from) {
  return plan.stripe_columns * kTimesCounted * from.width() * plan.pitch;
}

std::size_t DirectPlan::cached_bytes() const { return std::min(batch_bytes, kCachedBytes); }

std::uint64_t DirectPlan::stripe_count() const {
  const std::uint64_t begin = round_down(shape.columns.begin, shape.element.per_byte());
  return (shape.columns.end - begin + stripe_columns - 1) / stripe_columns;
}

Stripe DirectPlan::stripe(std::uint64_t i) const {
  const std::uint64_t begin = round_down(shape.columns.begin, shape.element.per_byte()) + i * stripe_columns;
  Stripe stripe;
  stripe.columns = {std::max(begin, shape.columns.begin), std::min(begin + stripe_columns, shape.columns.end)};
  stripe.records = {stripe.columns.begin - shape.columns.begin, stripe.columns.end - shape.columns.begin};
  stripe.skipped = stripe.columns.begin - begin;
  return stripe;
}

// Whole tiles, as many as stay in the cores' caches; one row of tiles, if there is memory for that.
std::uint64_t DirectPlan::rows_at_once(unsigned threads) const {
  const std::uint64_t row_bytes = std::max<std::uint64_t>(shape.element.bytes_of(stripe_columns), 1);
  const std::uint64_t tile = matrix::tile_elements(shape.element);
  const std::uint64_t most = batch_bytes / row_bytes,
                      aim =
                          std::max(round_down(std::min(cached_bytes() * threads, batch_bytes) / row_bytes, tile), tile);
  return aim <= most ? aim
                     : std::max<std::uint64_t>(round_down(most, shape.element.per_byte()), shape.element.per_byte());
}

DirectPlan plan_direct(const Shape& shape, const parity::Layout& from, const parity::Layout& to, std::uint32_t workers,
                       std::uint64_t memory) {
  DirectPlan plan;
  plan.shape = shape;
  plan.pitch = pitch_for(longest_piece(shape, from));
  plan.batch_bytes = std::clamp<std::uint64_t>(memory / (8 * workers), kBatchBytesMin, kBatchBytesMax);
  const std::uint64_t buffers = std::min(2 * workers * plan.batch_bytes, memory / 2);
  // A column has a piece from every LFS in its window; and where these go, every worker remembers.
  const std::uint64_t column_bytes = kTimesCounted * from.width() * plan.pitch + workers * sizeof(std::byte*);
  const std::uint64_t begin = round_down(shape.columns.begin, shape.element.per_byte());
  const std::uint64_t all = round_up(shape.columns.end - begin, shape.element.per_byte());
  const std::uint64_t windows = std::min(memory - buffers, kWindowsMax);
  const std::uint64_t most = std::min({windows / column_bytes, kStripeMax, plan.batch_bytes / shape.element.bits});
  plan.stripe_columns = most >= all ? all : whole_tiles(most, shape.element);
  plan.slots = most_slots(plan, to);
  return plan;
}

}  // namespace pif::transpose
