#include "context/companions.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::server {
namespace {

// A pair being filled.
struct OpenPair {
  CompanionPair pair;
  std::uint32_t size = 0;  // of each bevy

  bool is_whole() const { return pair.first.size() == size && pair.second.size() == size; }

  bool takes(const std::vector<Candidate>& bevy, const std::vector<Candidate>& companion, const Candidate& candidate,
             bool apart) const {
    return bevy.size() < size && !(apart && share_a_machine(std::span(&candidate, 1), companion));
  }

  // To the emptier bevy, so that both may get machines of their own; where machines do not count, to the first one.
  bool add(const Candidate& candidate, bool apart) {
    const bool fits_first = takes(pair.first, pair.second, candidate, apart);
    const bool fits_second = takes(pair.second, pair.first, candidate, apart);
    if (!fits_first && !fits_second) return false;
    const bool prefers_first = !apart || pair.first.size() <= pair.second.size();
    (fits_first && (prefers_first || !fits_second) ? pair.first : pair.second).push_back(candidate);
    PIF_ASSERT(pair.first.size() <= size && pair.second.size() <= size, pair.first.size(), pair.second.size(), size);
    return true;
  }
};

}  // namespace

bool share_a_machine(std::span<const Candidate> bevy, std::span<const Candidate> companion) {
  return std::any_of(bevy.begin(), bevy.end(), [&](const Candidate& one) {
    const auto is_there = [&](const Candidate& other) { return other.machine == one.machine; };
    return one.machine != 0 && std::any_of(companion.begin(), companion.end(), is_there);
  });
}

bool on_several_machines(std::span<const Candidate> candidates) {
  std::uint64_t first = 0;
  for (const Candidate& candidate : candidates) {
    if (first == 0) first = candidate.machine;
    if (candidate.machine != 0 && candidate.machine != first) return true;
  }
  return false;
}

std::vector<PairGroup> pair_up(std::span<const Candidate> candidates, std::span<const std::uint32_t> sizes,
                               bool apart) {
  PIF_ASSERT(!sizes.empty());
  std::vector<OpenPair> pairs;
  std::size_t first_open = 0;
  for (const Candidate& candidate : candidates) {
    while (first_open < pairs.size() && pairs[first_open].is_whole()) ++first_open;
    const auto begin = pairs.begin() + static_cast<std::ptrdiff_t>(first_open);
    if (std::any_of(begin, pairs.end(), [&](OpenPair& pair) { return pair.add(candidate, apart); })) continue;
    pairs.push_back({{}, sizes[pairs.size() % sizes.size()]});
    const bool is_added = pairs.back().add(candidate, apart);
    PIF_ASSERT(is_added, candidate.node, pairs.back().size);  // an empty pair takes anybody
  }
  std::vector<PairGroup> groups;
  for (std::size_t at = 0; at + sizes.size() <= pairs.size(); at += sizes.size()) {
    const std::span group = std::span(pairs).subspan(at, sizes.size());
    if (!std::all_of(group.begin(), group.end(), [](const OpenPair& pair) { return pair.is_whole(); })) continue;
    groups.emplace_back();
    for (OpenPair& pair : group) groups.back().push_back(std::move(pair.pair));
  }
  return groups;
}

}  // namespace pif::server
