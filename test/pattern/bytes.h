// What patterns mean, one byte at a time, in code that shares nothing with what is tested.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "pif/pattern/walker.h"

namespace pif::patterns {

using Bytes = std::vector<std::int64_t>;  // the offset of each byte, in order

inline void append_bytes(const std::vector<Level>& levels, std::int64_t place, Bytes& out) {
  for (const Level& level : levels)
    for (std::uint64_t i = 0; i < level.count; ++i) {
      const std::int64_t at = place + level.offset + static_cast<std::int64_t>(i) * level.stride;
      for (std::uint64_t byte = 0; byte < level.bytes; ++byte) out.push_back(at + static_cast<std::int64_t>(byte));
      append_bytes(level.inner, at, out);
    }
}

inline Bytes bytes_of(const Pattern& pattern) {
  Bytes out;
  append_bytes(pattern.levels, 0, out);
  return out;
}

// Bytes `skip` to skip + bytes of tiles of `tile`.
inline Bytes tiled_bytes(const Bytes& tile, std::int64_t extent, std::int64_t displacement, std::uint64_t skip,
                         std::uint64_t bytes) {
  Bytes out;
  for (std::uint64_t i = skip; i < skip + bytes; ++i)
    out.push_back(displacement + static_cast<std::int64_t>(i / tile.size()) * extent + tile[i % tile.size()]);
  return out;
}

inline void append_piece(std::int64_t offset, std::uint64_t size, Bytes& out) {
  for (std::uint64_t i = 0; i < size; ++i) out.push_back(offset + static_cast<std::int64_t>(i));
}

inline Walker walker_over(const Compiled& pattern, std::int64_t displacement, std::uint64_t skip, std::uint64_t bytes) {
  auto walker = Walker::make(pattern, displacement, skip, bytes);
  if (!walker) throw walker.error();
  return *walker;
}

inline Bytes walked(Walker walker) {
  Bytes out;
  while (const auto piece = walker.next()) append_piece(piece->offset, piece->size, out);
  return out;
}

// What a builder made, walked once or, tiled, `bytes` long.
inline Bytes walked(const Pattern& pattern, std::uint64_t bytes = 0) {
  const Compiled compiled = Compiled::make(pattern).value();
  return walked(walker_over(compiled, 0, 0, bytes == 0 ? compiled.bytes() : bytes));
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// Few bytes, at most 5 levels deep: levels of nothing, overlaps, negative strides, and what can be merged.
inline std::vector<Level> random_levels(Random& random, unsigned depth) {
  std::vector<Level> levels(1 + random.below(3));
  for (Level& level : levels) {
    level.offset = random.between(-40, 40);
    level.count = random.one_in(3) ? 1 : 1 + random.below(4);
    level.stride = random.between(-30, 30);
    if (depth > 1 && !random.one_in(3)) {
      level.inner = random_levels(random, depth - 1);
    } else {
      level.bytes = random.one_in(8) ? 0 : 1 + random.below(9);
      if (random.one_in(3)) level.stride = static_cast<std::int64_t>(level.bytes);
    }
  }
  return levels;
}

// It has bytes, at most 2000.
inline Pattern random_pattern(Random& random) {
  while (true) {
    Pattern pattern{random_levels(random, 1 + static_cast<unsigned>(random.below(5))), {}};
    if (random.one_in(2)) pattern.extent = random.between(-100, 100);
    const auto compiled = Compiled::make(pattern);
    if (compiled && compiled->bytes() <= 2000) return pattern;
  }
}

}  // namespace pif::patterns
