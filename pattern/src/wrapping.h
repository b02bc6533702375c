// Offsets whose sum is known to be in range: the terms are added modulo 2^64, where nothing between them overflows.
#pragma once

#include <cstdint>

namespace pif::patterns {

constexpr std::uint64_t wrapping(std::int64_t offset) { return static_cast<std::uint64_t>(offset); }
constexpr std::int64_t moved(std::int64_t offset, std::int64_t by) {
  return static_cast<std::int64_t>(wrapping(offset) + wrapping(by));
}

}  // namespace pif::patterns
