// The formulas and the plans of a transpose.
#include "../../tools/pif_transpose/cost.h"

#include <catch2/catch.hpp>

#include "../../tools/pif_transpose/direct_plan.h"
#include "../../tools/pif_transpose/recursive_plan.h"

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
    CHECK(plan.rows >= 262144);
    CHECK(plan.rows == plan.band << plan.passes);
    CHECK(plan.band % 6 == 0);
    if (memory > 1) CHECK(3 * 6 * plan.band * plan.row_bytes() <= memory);
  }
  const Shape small = {{1, matrix::BitOrder::kMsb}, {0, 300}, {0, 500}};
  CHECK(plan_recursive(small, layout(6), kGiB).passes == 0);
}

TEST_CASE("of all bands, as many bytes are used as the matrix has") {
  for (const auto& [rows, columns] : {std::pair(300, 5000), std::pair(5000, 300), std::pair(777, 778)}) {
    const Shape shape = {
        {8, matrix::BitOrder::kMsb}, {0, static_cast<std::uint64_t>(rows)}, {0, static_cast<std::uint64_t>(columns)}};
    for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 20, kGiB}) {
      const RecursivePlan plan = plan_recursive(shape, layout(6), memory);
      std::uint64_t bytes = 0;
      for (std::uint64_t band = 0; band < plan.band_count(); ++band)
        for (std::uint64_t i = 0; i < plan.band; ++i) bytes += plan.used_grains(i) * plan.used_bytes(band);
      CHECK(bytes == shape.row_count() * shape.column_count());
    }
  }
}

}  // namespace pif::transpose
