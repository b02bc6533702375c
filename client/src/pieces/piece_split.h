// Pieces of the byte view of fixed records, cut into pieces of the components they lie in. Pieces to be read are kept
// in runs: a regular pattern has few of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "pif/component/extents.h"
#include "pif/parity/layout.h"

namespace pif::client {

// Extent: component::ExtentRun or ConstExtent. of[lfs]: in the order in which they were added.
template <typename Extent>
struct PieceSplit {
  static constexpr bool kHasRuns = std::is_same_v<Extent, component::ExtentRun>;

  // pieces_max: more are not wanted.
  PieceSplit(const parity::Layout& layout_in, std::uint32_t record_length, std::size_t pieces_max)
      : layout(layout_in),
        length(record_length),
        count_max(pieces_max),
        of(layout_in.width()),
        is_rising(layout_in.width(), true),
        cell_(layout.locate(0)) {}

  // Bytes [offset, offset + size) of the file, which are at `at` in memory.
  void add(std::uint64_t offset, std::uint64_t size, decltype(Extent::at) at) {
    while (size > 0) {
      if (offset - record_begin_ >= length) go_to(offset);  // also where it is before that record
      const std::uint64_t within = offset - record_begin_;
      const std::size_t part = std::min<std::uint64_t>(size, length - within);
      add_piece(cell_.lfs, cell_.row * length + within, part, at);
      offset += part;
      size -= part;
      at += part;
    }
  }
  // `number` pieces of `size` bytes, each that much further in the file, and in memory, than the one before.
  void add_run(std::uint64_t offset, std::uint64_t size, decltype(Extent::at) at, std::uint64_t number,
               std::int64_t stride, std::int64_t at_stride) {
    while (number > 0) {
      std::uint64_t done = 0;
      if constexpr (kHasRuns) {
        if (number > 1 && stride > 0) done = add_in_record(offset, size, at, number, stride, at_stride);
      }
      if (done == 0) {
        add(offset, size, at);
        done = 1;
      }
      number -= done;
      offset += done * static_cast<std::uint64_t>(stride);
      if (number > 0) at += static_cast<std::ptrdiff_t>(done) * at_stride;
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
  const std::size_t count_max;
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
  // As many of the pieces as lie in the first one's record; none, if the first does not.
  std::uint64_t add_in_record(std::uint64_t offset, std::uint64_t size, std::byte* at, std::uint64_t number,
                              std::int64_t stride, std::int64_t at_stride) {
    if (offset - record_begin_ >= length) go_to(offset);
    const std::uint64_t within = offset - record_begin_, step = static_cast<std::uint64_t>(stride);
    if (within + size > length || step > length - within - size) return 0;
    component::ExtentRun run{cell_.row * length + within, size, at, number, step, at_stride};
    run.count = std::min(number, (length - within - size) / step + 1);
    if (step == size && static_cast<std::uint64_t>(at_stride) == size) {
      add_piece(cell_.lfs, run.offset, run.count * size, at);
      return run.count;
    }
    if (!of[cell_.lfs].empty() && run.offset < end_of(of[cell_.lfs].back())) is_rising[cell_.lfs] = false;
    of[cell_.lfs].push_back(run);
    count += run.count;
    bytes += run.count * size;
    return run.count;
  }
  void add_piece(LfsIndex lfs, std::uint64_t offset, std::size_t size, decltype(Extent::at) at) {
    auto& pieces = of[lfs];
    bytes += size;
    if (!pieces.empty()) {
      Extent& last = pieces.back();
      const std::uint64_t end = end_of(last);
      if (offset == end && is_one(last) && at == last.at + last.size) {
        last.size += size;
        return;
      }
      if (offset < end) is_rising[lfs] = false;
    }
    pieces.push_back({offset, size, at});
    ++count;
  }
  static bool is_one(const Extent& extent) {
    if constexpr (kHasRuns) return extent.count == 1;
    return true;
  }
  static std::uint64_t end_of(const Extent& extent) {
    std::uint64_t before = 0;
    if constexpr (kHasRuns) before = (extent.count - 1) * extent.stride;
    return extent.offset + before + extent.size;
  }

  // The record in which the last piece ended.
  std::uint64_t record_begin_ = 0;
  Cell cell_;
};

// The pieces of runs, one by one.
template <typename Extent>
std::vector<Extent> single_pieces(const std::vector<component::ExtentRun>& runs) {
  std::vector<Extent> out;
  out.reserve(runs.size());
  for (const component::ExtentRun& run : runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const component::Extent piece = run[i];
      out.push_back({piece.offset, piece.size, piece.at});
    }
  }
  return out;
}

// Sorts pieces to be read by offset; they may overlap.
inline void sort_pieces(std::vector<component::ExtentRun>& runs) {
  if (std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run.count > 1; }))
    runs = single_pieces<component::ExtentRun>(runs);
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
}

// Makes pieces to be written sorted and disjoint: where several have a byte, the last one's stays.
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
