#include "select.h"

#include "pif/base/assert.h"

namespace pif::summarize {
namespace {

constexpr unsigned kBits = 8;  // of a round
constexpr std::size_t kBuckets = std::size_t{1} << kBits;

struct Wanted {
  std::uint64_t place = 0;   // among those that begin so
  std::uint64_t prefix = 0;  // the bits that are known, at the top
};

void count(std::span<const std::uint64_t> values, std::uint64_t mask, unsigned shift, const Wanted& wanted,
           std::span<std::uint64_t> buckets) {
  for (const std::uint64_t value : values)
    if ((value & mask) == wanted.prefix) ++buckets[value >> shift & (kBuckets - 1)];
}

}  // namespace

Result<std::vector<std::uint64_t>> select(tool::Team& team, std::span<const std::uint64_t> values,
                                          std::span<const std::uint64_t> places) {
  std::vector<Wanted> wanted;
  for (const std::uint64_t place : places) wanted.push_back({place, 0});
  std::uint64_t mask = 0;
  for (unsigned shift = 64; shift > 0 && !wanted.empty(); mask |= std::uint64_t{kBuckets - 1} << shift) {
    shift -= kBits;
    std::vector<std::uint64_t> counts(wanted.size() * kBuckets);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      count(values, mask, shift, wanted[i], std::span(counts).subspan(i * kBuckets, kBuckets));
    PIF_TRY_VALUE(const auto all, team.sum(counts));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::uint64_t bucket = 0;
      for (; wanted[i].place >= all[i * kBuckets + bucket]; ++bucket) {
        PIF_ASSERT(bucket + 1 < kBuckets, wanted[i].place);
        wanted[i].place -= all[i * kBuckets + bucket];
      }
      wanted[i].prefix |= bucket << shift;
    }
  }
  std::vector<std::uint64_t> found;
  for (const Wanted& one : wanted) found.push_back(one.prefix);
  return found;
}

}  // namespace pif::summarize
