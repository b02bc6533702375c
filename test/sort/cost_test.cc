#include "../../tools/pif_sort/cost.h"

#include <catch2/catch.hpp>

using namespace pif::sort;

namespace {

constexpr Constants kConstants = {100e-9, 5e-9, 100e-9, 100e-6, 1};

double merge_of(MergeKind kind, std::uint32_t width, std::uint64_t batch) {
  return predict(kConstants, {10'000'000, width, false, batch}, kind).merge;
}

}  // namespace

TEST_CASE("a sort of twice the width takes half the time, until the token is what takes it") {
  const auto sort = [](std::uint32_t width) {
    return predict(kConstants, {10'000'000, width, false, 0}, MergeKind::kSplit).sort;
  };
  CHECK(sort(2) / sort(4) == Approx(2).epsilon(0.05));
  CHECK(merge_of(MergeKind::kSplit, 2, 0) / merge_of(MergeKind::kSplit, 4, 0) > 1.5);
  // One token decides on all records, however many workers there are: 10,000,000 / 4096 hops of 100 us and 4096
  // records.
  CHECK(merge_of(MergeKind::kPipelined, 64, 4096) == Approx(10e6 / 4096 * (100e-6 + 4096 * 5e-9)));
}

TEST_CASE("one record per hop takes a hop for every record") {
  CHECK(merge_of(MergeKind::kToken, 2, 0) == Approx(10e6 * (100e-6 + 5e-9)));
  CHECK(merge_of(MergeKind::kToken, 2, 4096) < merge_of(MergeKind::kToken, 2, 64));
}

TEST_CASE("the mean leaves out workers that have no records, and takes the slowest hop") {
  Constants empty;
  empty.hop = 1;
  const Constants mean = mean_of({kConstants, empty, kConstants});
  CHECK(mean.load == Approx(kConstants.load));
  CHECK(mean.hop == 1);
}
