// Whether a file lies on pairs of companion bevies that stay the same from file to file. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pif::parity {

// Nodes of two companion bevies.
using BevyPair = std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>;

// Each two companions among the file's bevies have the nodes of one of the pairs, in any order, either bevy first.
// nodes: of the file, bevy after bevy; bevies: their sizes, an even number of them, which add up to the nodes.
bool lies_on_pairs(std::span<const std::uint32_t> nodes, std::span<const std::uint32_t> bevies,
                   std::span<const BevyPair> pairs);

}  // namespace pif::parity
