// How long things took, in buckets of which each double of time has four. Fixed size; adding allocates nothing.
// Thread-safety: none; a value, which is copied whole.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pif/base/clock.h"

namespace pif {

class Histogram {
 public:
  // docs/PROTOCOL.md "Stats": the first four buckets are 0, 1, 2 and 3 ns; what is longer than 18 min is in the last.
  static constexpr std::size_t kBuckets = 160;

  // The bucket of a time in ns: always below kBuckets.
  static constexpr std::size_t bucket_of(std::uint64_t ns) {
    if (ns < 4) return static_cast<std::size_t>(ns);
    const auto exponent = static_cast<std::size_t>(std::bit_width(ns)) - 1;
    const std::size_t bucket = (exponent - 1) * 4 + ((ns >> (exponent - 2)) & 3);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // Shortest time in a bucket, in ns. bucket <= kBuckets; kBuckets gives where the last would end.
  static constexpr std::uint64_t begin_of(std::size_t bucket) {
    return bucket < 4 ? bucket : (4 + bucket % 4) << (bucket / 4 - 1);
  }

  // One more that took so long; less than nothing (clocks that went back) counts as nothing.
  void add(Duration took) { ++counts_[bucket_of(took.count() < 0 ? 0 : static_cast<std::uint64_t>(took.count()))]; }
  // Counts by bucket, as they travel ("Stats"). bucket < kBuckets.
  void add_count(std::size_t bucket, std::uint64_t count) { counts_[bucket] += count; }

  // How many were added: to one bucket (bucket < kBuckets), and to all, which takes a walk over the buckets.
  std::uint64_t count(std::size_t bucket) const { return counts_[bucket]; }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts_) sum += count;
    return sum;
  }
  // A time that `percent` (0 to 100) of all were not above, at most a quarter too long; zero if there were none.
  Duration percentile(unsigned percent) const {
    const std::uint64_t all = total();
    if (all == 0) return Duration::zero();
    const std::uint64_t wanted = all - all * (100 - percent) / 100;
    std::uint64_t sum = 0;
    std::size_t bucket = 0;
    while (bucket + 1 < kBuckets && (sum += counts_[bucket]) < wanted) ++bucket;
    return Duration(static_cast<std::int64_t>(begin_of(bucket + 1)));
  }
  // The part that was added since `before`, an earlier copy of this one.
  Histogram since(const Histogram& before) const {
    Histogram out;
    for (std::size_t i = 0; i < kBuckets; ++i) out.counts_[i] = counts_[i] - before.counts_[i];
    return out;
  }
  // As if all that was added there had been added here.
  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
};

}  // namespace pif
