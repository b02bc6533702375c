// Pairs the bytes of two walks: byte i of the file's with byte i of memory's.
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "pif/base/assert.h"
#include "pif/pattern/walker.h"

namespace pif::patterns {

// Bytes that are contiguous on both sides.
struct PiecePair {
  std::int64_t file_offset = 0;
  std::int64_t memory_offset = 0;
  std::uint64_t size = 0;

  bool operator==(const PiecePair&) const = default;
};

// `count` such pairs at regular distances, which are 0 for one pair.
struct RunPair {
  std::int64_t file_offset = 0;
  std::int64_t memory_offset = 0;
  std::uint64_t size = 0;
  std::int64_t file_stride = 0;
  std::int64_t memory_stride = 0;
  std::uint64_t count = 0;
};

// Allocates nothing; a pair takes what the pieces take.
class Zip {
 public:
  // Both walks have the same bytes left. The patterns that they walk over must outlive this.
  Zip(const Walker& file, const Walker& memory) : file_(file), memory_(memory) {
    PIF_ASSERT(file.left() == memory.left(), file.left(), memory.left());
  }

  // Bytes that are still to come.
  std::uint64_t left() const { return file_.left(); }

  // The next pair, or its first bytes_max bytes; nothing at the end. bytes_max: at least 1.
  std::optional<PiecePair> next(std::uint64_t bytes_max = kBytesMax) {
    if (left() == 0) return std::nullopt;
    const std::uint64_t size = pair_bytes(bytes_max);
    const auto file = file_.next(size);
    const auto memory = memory_.next(size);
    return PiecePair{file->offset, memory->offset, size};
  }

  // The next pairs that are regular, at most pairs_max, of at most bytes_max bytes together; one pair that is cut if it
  // has more. Nothing at the end. Where one side is contiguous, runs are as long as those of the other side.
  std::optional<RunPair> next_run(std::uint64_t bytes_max = kBytesMax, std::uint64_t pairs_max = UINT64_MAX);

 private:
  std::uint64_t pair_bytes(std::uint64_t bytes_max) const {
    return std::min({file_.piece_bytes(), memory_.piece_bytes(), bytes_max});
  }

  Walker file_;
  Walker memory_;
};

}  // namespace pif::patterns
