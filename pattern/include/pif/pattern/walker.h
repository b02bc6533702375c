// Walks a tiled pattern, from any byte on: the contiguous pieces in the pattern's order, one by one or in regular runs.
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "pif/base/assert.h"
#include "pif/pattern/compiled.h"

namespace pif::patterns {

// `count` pieces of `size` bytes; each begins `stride` bytes behind the beginning of the one before. A run of one piece
// has stride 0.
struct Run {
  std::int64_t offset = 0;
  std::uint64_t size = 0;
  std::int64_t stride = 0;
  std::uint64_t count = 0;

  bool operator==(const Run&) const = default;
};

// Allocates nothing. A piece takes O(depth) at worst, and O(1) in the long run. Beginning anywhere takes O(depth *
// log(levels)), in a list O(List::kBeginEvery) more.
class Walker {
 public:
  // From byte `skip` of the tiled pattern on, `bytes` long; offsets count from `displacement`. kTooLarge: as
  // Compiled::bounds(). `pattern` must outlive the walker, and stay where it is.
  [[nodiscard]] static Result<Walker> make(const Compiled& pattern, std::int64_t displacement, std::uint64_t skip,
                                           std::uint64_t bytes);

  // Bytes that are still to come.
  std::uint64_t left() const { return left_; }
  // Where the next byte is; nobody knows at the end.
  std::int64_t offset() const { return static_cast<std::int64_t>(place_ + cut_); }
  // Bytes that the next piece has, if nothing cuts it; 0 at the end.
  std::uint64_t piece_bytes() const { return std::min(size_ - cut_, left_); }

  // The next piece, or its first bytes_max bytes; nothing at the end. bytes_max: at least 1. Pieces that touch are
  // joined only where one level says so.
  std::optional<Piece> next(std::uint64_t bytes_max = kBytesMax) {
    PIF_ASSERT(bytes_max > 0);
    if (left_ == 0) return std::nullopt;
    const Piece piece{offset(), std::min(piece_bytes(), bytes_max)};
    pass_within_piece(piece.size);
    return piece;
  }

  // As many of the next pieces as are regular and have at most bytes_max bytes together; if the first has more, or was
  // begun, a run of one piece: the rest of it, cut as by next(). Nothing at the end.
  std::optional<Run> next_run(std::uint64_t bytes_max = kBytesMax);

  struct Repetition {
    std::int64_t stride = 0;
    std::uint64_t count = 1;
  };
  // So many pieces of `size` bytes come next at a regular distance, if pieces are cut to that; at least 1. May be more
  // than are left. size: at most piece_bytes(), at least 1.
  Repetition repetition(std::uint64_t size) const;
  // Passes over `count` pieces of `size` bytes: at most as many as repetition(size) says, and as are left.
  void pass(std::uint64_t size, std::uint64_t count);

 private:
  using Node = Compiled::Node;
  // Where the walk is on one level. Offsets modulo 2^64.
  struct Frame {
    const Node* node;
    const Node* end;      // of its siblings
    std::uint64_t outer;  // place of the enclosing repetition
    std::uint64_t place;  // of the repetition that is walked
    std::uint64_t count;  // repetitions to come, with that one
  };

  Walker() = default;
  void seek(const Node* root, std::uint64_t displacement, std::uint64_t at);
  void enter(const Node* node, const Node* end, std::uint64_t outer);
  void descend();
  void enter_list(std::uint64_t at);
  void load_item();
  void advance();
  void pass_within_piece(std::uint64_t bytes) {
    left_ -= bytes;
    cut_ += bytes;
    if (cut_ == size_) pass_pieces(1);
  }
  // left_ does without their bytes already.
  void pass_pieces(std::uint64_t count) {
    cut_ = 0;
    place_ += count * stride_;
    count_ -= count;
    if (count_ == 0 && left_ > 0) advance();
  }

  // The leaf: pieces to come, of which the first was begun if cut_ > 0.
  std::uint64_t place_ = 0;
  std::uint64_t stride_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t left_ = 0;

  const Compiled* pattern_ = nullptr;
  // In a leaf that is a list: the piece that is walked, and the end of all.
  const Level* item_ = nullptr;
  const Level* item_end_ = nullptr;
  unsigned depth_ = 0;                       // of the leaf
  std::array<Frame, kDepthMax + 1> frames_;  // [0]: the tiles
};

}  // namespace pif::patterns
