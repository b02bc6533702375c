// Which bytes a request is for, and in which order: regular repetition, in levels inside one another. The file's bytes
// are one pattern, memory's are another; a request pairs them byte by byte (zip.h). builders.h makes patterns.
// Pure; values, cheap to move; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pif/base/result.h"

namespace pif::patterns {

inline constexpr unsigned kDepthMax = 32;                           // levels inside one another
inline constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 62;  // of a pattern, and of a request

// Contiguous bytes.
struct Piece {
  std::int64_t offset = 0;
  std::uint64_t size = 0;

  bool operator==(const Piece&) const = default;
};

// `count` repetitions of a piece of `bytes` bytes, or of what `inner` says: never both. All in bytes. Repetition i
// begins `offset + i * stride` behind the place where the level itself is: that of the enclosing repetition, or 0.
struct Level {
  std::int64_t offset = 0;
  std::uint64_t count = 1;
  std::int64_t stride = 0;  // may be negative, and may make repetitions overlap
  std::uint64_t bytes = 0;  // neither bytes nor inner: a level of nothing, which changes nothing
  std::vector<Level> inner;
};

// The levels one after another. A pattern may be tiled: tile t is the pattern t * extent bytes further on, for all
// t >= 0.
struct Pattern {
  std::vector<Level> levels;
  // In bytes; may be anything. Default: from the lowest byte to the end of the highest, as in MPI (MPI 4.1, section
  // 5.1.7). So the default tiles lie side by side.
  std::optional<std::int64_t> extent;
};

// Whether it can be walked. kInvalid: a level without repetitions, one with both bytes and inner levels, or no bytes at
// all. kTooLarge: over kDepthMax levels inside one another, over kBytesMax bytes, or an extent, or bytes of a level
// as seen from where it is, that 64 bits with sign do not reach.
[[nodiscard]] Status validate(const Pattern& pattern);

}  // namespace pif::patterns
