#include "pif/base/histogram.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

namespace pif {
namespace {

TEST_CASE("buckets follow one another without a gap, and none is wider than a quarter of what it begins at") {
  for (std::size_t bucket = 0; bucket + 1 < Histogram::kBuckets; ++bucket) {
    const std::uint64_t begin = Histogram::begin_of(bucket);
    const std::uint64_t end = Histogram::begin_of(bucket + 1);
    REQUIRE(begin < end);
    CHECK(Histogram::bucket_of(begin) == bucket);
    CHECK(Histogram::bucket_of(end - 1) == bucket);
    if (begin >= 4) CHECK((end - begin) * 4 <= begin);
  }
  CHECK(Histogram::bucket_of(UINT64_MAX) == Histogram::kBuckets - 1);
}

TEST_CASE("a percentile is not below the true one, and at most a quarter above it") {
  REQUIRE(rc::check([](const std::vector<std::uint32_t>& times) {
    RC_PRE(!times.empty());
    Histogram histogram;
    for (const std::uint32_t time : times) histogram.add(Duration(time));
    auto sorted = times;
    std::sort(sorted.begin(), sorted.end());
    for (const unsigned percent : {1u, 50u, 99u, 100u}) {
      const std::size_t rank = sorted.size() - sorted.size() * (100 - percent) / 100;
      const auto truth = static_cast<std::int64_t>(sorted[std::max<std::size_t>(rank, 1) - 1]);
      const auto said = histogram.percentile(percent).count();
      RC_ASSERT(said >= truth);
      RC_ASSERT(said <= truth + truth / 4 + 1);
    }
  }));
}

TEST_CASE("nothing measured is no time, and time that ran backwards is none either") {
  Histogram histogram;
  CHECK(histogram.percentile(99) == Duration::zero());
  histogram.add(Duration(-5));
  CHECK(histogram.count(0) == 1);
}

TEST_CASE("what was added between two looks is their difference") {
  Histogram histogram;
  histogram.add(std::chrono::milliseconds(1));
  const Histogram before = histogram;
  histogram.add(std::chrono::milliseconds(8));
  const Histogram between = histogram.since(before);
  CHECK(between.total() == 1);
  CHECK(between.percentile(50) > std::chrono::milliseconds(8));
  Histogram all = before;
  all.merge(between);
  CHECK(all.total() == 2);
}

}  // namespace
}  // namespace pif
