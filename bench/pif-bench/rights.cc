// Rights: what it costs an LFS to verify a capability that it sees for the first time. (Of one that a connection has
// shown before, it looks at expiry, file, rights and user only.)
#include <vector>

#include <fmt/format.h>

#include "harness.h"
#include "pif/base/capability.h"

namespace pif::bench {
namespace {

constexpr unsigned kChecks = 20'000;
constexpr std::int64_t kNow = 1'700'000'000;

// Seconds for each of kChecks checks of different capabilities, one of which is forged.
double check_all(const ClusterKey& key, const std::vector<std::string>& packed) {
  const double start = now();
  unsigned good = 0;
  for (unsigned i = 0; i < packed.size(); ++i) {
    const auto capability = verify_capability(key, packed[i], kNow);
    if (capability && require(*capability, FileId(i), kMayRead, 1000)) ++good;
  }
  const double seconds = now() - start;
  if (good + 1 != packed.size()) die("a capability was judged wrongly");
  return seconds / static_cast<double>(packed.size());
}

}  // namespace

void bench_rights(Context& c) {
  ClusterKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
  std::vector<std::string> packed;
  for (unsigned i = 0; i < kChecks; ++i)
    packed.push_back(mint(key, Capability{FileId(i), 1000, kMayRead, 1, kNow + 600}));
  packed[kChecks / 2][7] ^= 1;
  check_all(key, packed);  // warm
  std::vector<double> rounds;
  for (unsigned i = 0; i < c.options.repeats; ++i) rounds.push_back(check_all(key, packed) * 1e6);
  const double middle = median(rounds);
  c.report.add({"check of a capability, microseconds", fmt::format("{:.2f} us", middle), "", middle, 5, false, ""});
}

}  // namespace pif::bench
