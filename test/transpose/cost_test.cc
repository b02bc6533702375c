// The formulas and the plans of a transpose.
#include "../../tools/pif_transpose/matrix/cost.h"

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "../../tools/pif_transpose/direct/direct_plan.h"
#include "../../tools/pif_transpose/recursive/recursive_plan.h"

namespace pif::transpose {
namespace {

tool::Calibration calibration() {
  tool::Calibration made;
  made.hardware.cores = 64;
  made.constants.turn_byte = made.constants.weave_byte = made.constants.load_byte = 0.3e-9;
  made.constants.pass_half_byte = made.constants.band_byte = 0.5e-9;
  return made;
}
constexpr std::uint64_t kGiB = 1u << 30;
const Shape kLarge = {{1, matrix::BitOrder::kMsb}, {0, 262144}, {0, 262144}};  // 8 GiB

parity::Layout layout(std::uint32_t width) { return parity::Layout::make(width).value(); }

}  // namespace

TEST_CASE("twice as many LFSs transpose in half the time, as far as there are cores") {
  const auto direct = [](std::uint32_t width) {
    return predict(calibration(), DirectShape{kGiB, width, width, 1, 0, width}).seconds();
  };
  CHECK(direct(2) / direct(4) == Approx(2));
  CHECK(direct(2) == Approx(static_cast<double>(kGiB) * 0.3e-9));
  CHECK(direct(64) == Approx(direct(128)));
  const auto recursive = [](std::uint32_t width, std::uint32_t passes) {
    return predict(calibration(), RecursiveShape{kGiB, kGiB, width, passes}).seconds();
  };
  CHECK(recursive(2, 5) / recursive(4, 5) == Approx(2));
  CHECK(recursive(4, 6) - recursive(4, 5) == Approx(recursive(4, 5) - recursive(4, 4)));
  CHECK(recursive(4, 5) > direct(4));
}

TEST_CASE("stripes cover every column once, and windows are as large as memory allows") {
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{64} << 20, std::uint64_t{512} << 20, 64 * kGiB}) {
    Shape shape = kLarge;
    shape.columns = {13, 200'003};
    const DirectPlan plan = plan_direct(shape, layout(4), layout(3), 4, memory);
    std::uint64_t next = shape.columns.begin;
    for (std::uint64_t i = 0; i < plan.stripe_count(); ++i) {
      const Stripe stripe = plan.stripe(i);
      CHECK(stripe.columns.begin == next);
      CHECK((stripe.columns.begin - stripe.skipped) % 8 == 0);
      next = stripe.columns.end;
    }
    CHECK(next == shape.columns.end);
    if (memory > 1) CHECK(2 * 3 * plan.window_bytes(4) + 2 * 4 * plan.batch_bytes <= memory + memory / 8);
  }
}

TEST_CASE("bands fit into memory, and are exchanged on one LFS") {
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{64} << 20, 4 * kGiB, 64 * kGiB}) {
    const RecursivePlan plan = plan_recursive(kLarge, layout(6), memory);
    CHECK(plan.rows() >= 262144);
    CHECK(plan.side == plan.band << plan.passes);
    CHECK(plan.down == 1);
    CHECK(plan.across == 1);
    CHECK(plan.band % 6 == 0);
    if (memory > 1) CHECK(3 * 6 * plan.band * plan.band_row_bytes() <= memory);
  }
  const Shape small = {{1, matrix::BitOrder::kMsb}, {0, 300}, {0, 500}};
  CHECK(plan_recursive(small, layout(6), kGiB).passes == 0);
}

namespace {

constexpr std::uint64_t kSides[] = {1, 3, 8, 53, 300, 777, 778, 1200, 5000, 100'000};

// f(plan) for matrices of all these sides, tall and wide, in little memory and in much.
template <typename F>
void for_all_plans(const F& f) {
  for (const std::uint32_t bits : {1, 8}) {
    for (const std::uint64_t rows : kSides) {
      for (const std::uint64_t columns : kSides) {
        for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 16, std::uint64_t{1} << 20, kGiB}) {
          const Shape shape = {{bits, matrix::BitOrder::kMsb}, {0, rows}, {5, 5 + columns}};
          const RecursivePlan plan = plan_recursive(shape, layout(6), memory);
          INFO(rows << " x " << columns << " of " << bits << " bits, memory " << memory << ": " << plan.down << " x "
                    << plan.across << " squares of " << plan.band << " << " << plan.passes << ", blocks "
                    << plan.blocks);
          f(plan, memory);
        }
      }
    }
  }
}

std::uint64_t bytes_of(std::uint64_t rows, std::uint64_t columns, const RecursivePlan& plan) {
  return (rows * columns * plan.shape.element.bits + 7) / 8;
}

}  // namespace

TEST_CASE("of all bands, as many bytes are used as the matrix has, and every column is in one of them") {
  for_all_plans([](const RecursivePlan& plan, std::uint64_t) {
    std::uint64_t bytes = 0, columns = 0, grains = 0;
    for (std::uint64_t square = 0; square < plan.down; ++square)
      for (std::uint64_t i = 0; i < plan.band; ++i) grains += plan.used_grains(square, i);
    std::vector<Range> found;
    for (std::uint64_t number = 0; number < plan.band_count(); ++number) {
      const RecursivePlan::Band band = plan.band_of(number);
      for (std::uint64_t square = band.first; square < band.first + band.count; ++square) {
        const Range range = plan.columns_of(band, square);
        if (range.empty()) continue;
        found.push_back(range);
        columns += range.size();
        bytes += grains * plan.shape.element.bytes_of(range.size());
      }
    }
    std::sort(found.begin(), found.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    CHECK(std::adjacent_find(found.begin(), found.end(),
                             [](const Range& a, const Range& b) { return a.end != b.begin; }) == found.end());
    CHECK(columns == plan.column_end());
    CHECK(bytes == plan.shape.row_count() * plan.shape.element.bytes_of(plan.column_end()));
  });
}

TEST_CASE("scratch files and work are in proportion to the matrix, whatever its sides") {
  for_all_plans([](const RecursivePlan& plan, std::uint64_t memory) {
    const std::uint64_t rows = plan.shape.row_count(), columns = plan.column_end();
    const std::uint64_t unit = 24 << plan.passes;  // to which sides are rounded: the period of 6 LFSs, and whole bytes
    CHECK(plan.scratch_bytes() <= 4 * bytes_of(rows + (plan.passes > 0 ? unit : 0), columns + unit, plan));
    if (plan.band >= 8 * 24 && plan.passes > 0) CHECK(plan.scratch_bytes() <= 4 * bytes_of(rows, columns, plan));
    // A band of several squares is no larger than what one may be, and there are enough for all workers.
    if (plan.blocks == 1) return;
    CHECK(3 * 6 * plan.blocks * plan.band * plan.band_row_bytes() <= memory);
    CHECK(plan.band_count() >= 4 * 6);
  });
  const Shape tall = {{1, matrix::BitOrder::kMsb}, {0, 64 << 20}, {0, 4096}};  // 32 GiB: 4 PiB as a square
  CHECK(plan_recursive(tall, layout(4), 4 * kGiB).scratch_bytes() <= 66 * kGiB);
}

}  // namespace pif::transpose
