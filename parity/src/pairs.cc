#include "pif/parity/pairs.h"

#include <algorithm>
#include <numeric>

#include "pif/base/assert.h"

namespace pif::parity {
namespace {

using Nodes = std::vector<std::uint32_t>;

Nodes sorted(Nodes nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

bool is_one_of(const Nodes& bevy, const Nodes& companion, std::span<const BevyPair> pairs) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const BevyPair& pair) {
    const Nodes first = sorted(pair.first);
    const Nodes second = sorted(pair.second);
    return (bevy == first && companion == second) || (bevy == second && companion == first);
  });
}

}  // namespace

bool lies_on_pairs(std::span<const std::uint32_t> nodes, std::span<const std::uint32_t> bevies,
                   std::span<const BevyPair> pairs) {
  PIF_ASSERT(bevies.size() % 2 == 0, bevies.size());
  PIF_ASSERT(std::accumulate(bevies.begin(), bevies.end(), std::size_t{0}) == nodes.size(), nodes.size());
  std::vector<Nodes> parts;
  for (const std::uint32_t size : bevies) {
    parts.push_back(sorted(Nodes(nodes.begin(), nodes.begin() + size)));
    nodes = nodes.subspan(size);
  }
  const std::size_t half = parts.size() / 2;  // bevies a and a + half are companions
  for (std::size_t i = 0; i < half; ++i)
    if (!is_one_of(parts[i], parts[i + half], pairs)) return false;
  return true;
}

}  // namespace pif::parity
