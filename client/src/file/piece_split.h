// Pieces of the byte view of fixed records, cut into pieces of the components they lie in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "pif/component/extents.h"
#include "pif/parity/layout.h"

namespace pif::client {

// Extent: component::Extent or ConstExtent. of[lfs]: in the order in which they were added.
template <typename Extent>
struct PieceSplit {
  PieceSplit(const parity::Layout& layout_in, std::uint32_t record_length)
      : layout(layout_in),
        length(record_length),
        of(layout_in.width()),
        is_rising(layout_in.width(), true),
        cell_(layout.locate(0)) {}

  // Bytes [offset, offset + size) of the file, which are at `at` in memory.
  void add(std::uint64_t offset, std::uint64_t size, decltype(Extent::at) at) {
    while (size > 0) {
      if (offset - record_begin_ >= length) go_to(offset);  // also where it is before that record
      const std::uint64_t within = offset - record_begin_;
      const std::size_t part = std::min<std::uint64_t>(size, length - within);
      add_to(cell_.lfs, cell_.row * length + within, part, at);
      offset += part;
      size -= part;
      at += part;
    }
  }
  void clear() {
    for (auto& pieces : of) pieces.clear();
    std::fill(is_rising.begin(), is_rising.end(), true);
    count = 0;
    bytes = 0;
  }

  const parity::Layout& layout;
  const std::uint64_t length;
  std::vector<std::vector<Extent>> of;
  std::vector<char> is_rising;  // each begins at or behind the end of the one before
  std::size_t count = 0;
  std::uint64_t bytes = 0;

 private:
  // The record with that byte. Mostly it is the next one, and finding one takes divisions.
  void go_to(std::uint64_t offset) {
    if (offset != record_begin_ + length || !layout.is_even()) {
      record_begin_ = offset - offset % length;
      cell_ = layout.locate(offset / length);
      return;
    }
    record_begin_ = offset;
    if (++cell_.lfs < layout.width()) return;
    cell_ = {0, cell_.row + 1};
  }
  void add_to(LfsIndex lfs, std::uint64_t offset, std::size_t size, decltype(Extent::at) at) {
    auto& pieces = of[lfs];
    bytes += size;
    if (!pieces.empty()) {
      Extent& last = pieces.back();
      const std::uint64_t end = last.offset + last.size;
      if (offset == end && at == last.at + last.size) {
        last.size += size;
        return;
      }
      if (offset < end) is_rising[lfs] = false;
    }
    pieces.push_back({offset, size, at});
    ++count;
  }

  // The record in which the last piece ended.
  std::uint64_t record_begin_ = 0;
  Cell cell_;
};

// What is to be read, by offset; pieces may overlap.
inline void sort_pieces(std::vector<component::Extent>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
}

// What is to be written, by offset and disjoint: of bytes that several pieces have, the last one's.
inline void settle_pieces(std::vector<component::ConstExtent>& pieces) {
  std::map<std::uint64_t, component::ConstExtent> settled;  // by offset
  const auto cut = [&settled](std::uint64_t at) {           // so that none goes across `at`
    auto next = settled.upper_bound(at);
    if (next == settled.begin()) return;
    component::ConstExtent& before = std::prev(next)->second;
    if (before.offset == at || before.offset + before.size <= at) return;
    const std::size_t kept = at - before.offset;
    settled.emplace_hint(next, at, component::ConstExtent{at, before.size - kept, before.at + kept});
    before.size = kept;
  };
  for (const component::ConstExtent& piece : pieces) {
    if (piece.size == 0) continue;
    cut(piece.offset);
    cut(piece.offset + piece.size);
    settled.erase(settled.lower_bound(piece.offset), settled.lower_bound(piece.offset + piece.size));
    settled.emplace(piece.offset, piece);
  }
  pieces.clear();
  for (const auto& [offset, piece] : settled) pieces.push_back(piece);
}

}  // namespace pif::client
