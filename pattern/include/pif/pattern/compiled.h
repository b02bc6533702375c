// A pattern that is known to be good, in the form in which it is walked: what is regular is merged, and each level
// knows its bytes, so that a walk can begin at any byte. Long lists of pieces stay where they are: they are walked in
// the pattern itself. Pure; const calls from several threads are fine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pif/pattern/pattern.h"

namespace pif::patterns {

// The lowest byte, and the end of the highest.
struct Bounds {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};

// So many pieces beside one another, each of them one level, are a list that is not copied.
inline constexpr std::size_t kListPiecesMin = 1024;

class Compiled {
 public:
  // Errors: those of validate(). Takes time in proportion to the levels, whatever their counts, and memory in
  // proportion to those that are in no list, with next to nothing for a list. A pattern with lists outlives this,
  // and what walks over it, and stays as it is.
  [[nodiscard]] static Result<Compiled> make(const Pattern& pattern);

  // Bytes and bounds of one tile.
  std::uint64_t bytes() const { return bytes_; }
  Bounds bounds() const { return bounds_; }
  // From one tile to the next.
  std::int64_t extent() const { return extent_; }
  // Whether each piece begins at or behind the end of the one before, in all tiles.
  bool is_rising() const { return is_rising_; }

  // The bounds of the tiles in which bytes skip to skip + bytes are, moved by `displacement`: a walk may reach less
  // far. Without bytes, the displacement. kTooLarge: 64 bits do not reach it, or skip + bytes is over kBytesMax.
  [[nodiscard]] Result<Bounds> bounds(std::int64_t displacement, std::uint64_t skip, std::uint64_t bytes) const;

  // A level as it is walked. Invariants: one without children has bytes; one with children has at least two
  // repetitions. A node that is repeated once has stride 0.
  struct Node {
    std::int64_t offset = 0;
    std::uint64_t count = 1;
    std::int64_t stride = 0;
    std::uint64_t bytes = 0;     // of one repetition
    std::uint64_t begin = 0;     // bytes of the siblings before it
    std::size_t child = 0;       // index of the first; they are consecutive
    std::size_t children = 0;    // none: a leaf
    std::size_t list = kNoList;  // a leaf of that list's pieces, and no other

    // Whether its repetitions are pieces of that many bytes.
    bool is_piece() const { return children == 0 && list == kNoList; }
  };
  static constexpr std::size_t kNoList = SIZE_MAX;
  // Pieces of the pattern. Some may be empty, not all.
  struct List {
    static constexpr std::size_t kBeginEvery = 1024;
    const Level* first = nullptr;
    const Level* end = nullptr;
    std::vector<std::uint64_t> begins;  // bytes before each kBeginEvery-th of them
  };
  // The list of a node that is the leaf of one; valid as long as nodes().
  const List& list(const Node& node) const { return lists_[node.list]; }
  // All levels; the last is the root, whose repetitions are the tiles, of more than kBytesMax bytes together. A pattern
  // of one level may be merged with it. The pointer is valid as long as this object is neither assigned to nor moved
  // from.
  const Node* nodes() const { return nodes_.data(); }
  const Node* root() const { return &nodes_.back(); }

 private:
  Compiled() = default;

  std::vector<Node> nodes_;
  std::vector<List> lists_;
  std::uint64_t bytes_ = 0;
  Bounds bounds_;
  std::int64_t extent_ = 0;
  bool is_rising_ = false;
};

// A pattern with its compiled form, for a program that uses it in many requests.
class CompiledPattern {
 public:
  // Errors: those of Compiled::make().
  [[nodiscard]] static Result<std::shared_ptr<const CompiledPattern>> make(Pattern pattern);

  // Both are valid as long as this object.
  const Pattern& pattern() const { return pattern_; }
  const Compiled& compiled() const { return *compiled_; }

 private:
  Pattern pattern_;
  std::optional<Compiled> compiled_;  // always there; its lists are those of pattern_
};

}  // namespace pif::patterns
