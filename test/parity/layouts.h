// Layouts to try, and plain arithmetic about bevies that does not go through the code under test.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "pif/parity/layout.h"

namespace pif::parity {

using Bevies = std::vector<std::uint32_t>;

inline Layout layout_of(const Bevies& sizes) {
  return Layout::make(std::accumulate(sizes.begin(), sizes.end(), 0u), sizes).value();
}

// Every B and m for which the guarantees are stated; all bevies alike.
inline std::vector<Bevies> uniform_bevies() {
  std::vector<Bevies> all;
  for (const std::uint32_t size : {2u, 3u, 4u, 5u, 8u})
    for (const std::size_t count : {2u, 4u, 6u}) all.emplace_back(count, size);
  return all;
}

// Pairs of companions of different sizes.
inline std::vector<Bevies> mixed_bevies() {
  return {{2, 3, 2, 3}, {4, 2, 4, 2}, {3, 5, 3, 5}, {2, 8, 2, 8}, {4, 3, 2, 4, 3, 2}, {5, 5, 2, 5, 5, 2}};
}

// Every B that a layout should have, and companions of several sizes.
inline std::vector<Bevies> all_bevies() {
  auto all = mixed_bevies();
  for (std::uint32_t size = 2; size <= 11; ++size)
    for (const std::size_t count : {2u, 4u}) all.emplace_back(count, size);
  return all;
}

inline std::vector<Bevies> sample_bevies() {
  auto all = uniform_bevies();
  for (auto& sizes : mixed_bevies()) all.push_back(std::move(sizes));
  return all;
}

// Number of the bevy that `lfs` is in, and its size.
inline std::pair<std::size_t, std::uint32_t> bevy_of(const Bevies& sizes, LfsIndex lfs) {
  std::size_t bevy = 0;
  while (lfs >= sizes[bevy]) lfs -= sizes[bevy++];
  return {bevy, sizes[bevy]};
}

inline LfsIndex first_of(const Bevies& sizes, std::size_t bevy) {
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(bevy), 0u);
}

// The thesis's own arithmetic, in rows of figure 4.1 (cell rows), of which rows are to be what is left without parity.
namespace thesis {

inline bool is_parity(const Bevies& sizes, Cell cell) {
  const auto [bevy, size] = bevy_of(sizes, cell.lfs);
  return cell.row % size == cell.lfs - first_of(sizes, bevy);
}

inline LfsIndex companion_of(const Bevies& sizes, std::size_t bevy) {
  return first_of(sizes, (bevy + sizes.size() / 2) % sizes.size());
}

// Eq. (4.8).
inline Cell locate(const Bevies& sizes, RecordNumber n) {
  const LfsIndex width = first_of(sizes, sizes.size());
  const auto y = static_cast<LfsIndex>(n % width);
  const auto [bevy, size] = bevy_of(sizes, y);
  const std::uint64_t m = n / width * size + (y - first_of(sizes, bevy));
  const Row row = m / (size - 1);
  const std::uint64_t d = m % (size - 1);
  return {first_of(sizes, bevy) + static_cast<LfsIndex>(d < row % size ? d : d + 1), row};
}

// Eq. (4.2) to (4.4) as printed.
inline Cell parity_of(const Bevies& sizes, Cell data) {
  const auto [bevy, size] = bevy_of(sizes, data.lfs);
  const std::uint64_t c = data.lfs - first_of(sizes, bevy);
  const std::uint64_t i = (c + size * (data.row % size)) % (size + 1);
  return {companion_of(sizes, bevy) + static_cast<LfsIndex>(i - 1), size * (data.row / size) + i - 1};
}

// Eq. (4.5) to (4.7), t up to B - 2.
inline std::vector<Cell> members_of(const Bevies& sizes, Cell parity) {
  const auto [bevy, size] = bevy_of(sizes, parity.lfs);
  std::vector<Cell> members;
  for (std::uint32_t t = 0; t + 1 < size; ++t) {
    const std::uint32_t g = parity.lfs - first_of(sizes, bevy) + 1 + t * (size + 1);
    members.push_back({companion_of(sizes, bevy) + g % size, parity.row / size * size + g / size});
  }
  return members;
}

// The row of a data cell, and the parity row of a parity cell: so many of their kind are above.
inline Row row_of(const Bevies& sizes, Cell cell) {
  Row row = 0;
  for (Row above = 0; above < cell.row; ++above)
    row += is_parity(sizes, {cell.lfs, above}) == is_parity(sizes, cell) ? 1 : 0;
  return row;
}

}  // namespace thesis

// Records of one superblock: width * lcm(B - 1) over its bevies.
inline std::uint64_t superblock(const Layout& layout) {
  std::uint64_t cycles = 1;
  for (const auto size : layout.bevies()) cycles = std::lcm(cycles, std::uint64_t{size} - 1);
  return layout.width() * cycles;
}

// Records after which everything has repeated twice: whole superblocks, and whole turns of every parity diagonal.
inline std::uint64_t two_periods(const Layout& layout) {
  std::uint64_t cycles = 1;
  for (const auto size : layout.bevies()) cycles = std::lcm(cycles, std::uint64_t{size} - 1);
  for (const auto size : layout.bevies()) cycles = std::lcm(cycles, std::uint64_t{size});
  return layout.width() * cycles * 2;
}

// Inside rc::check: any layout, with or without bevies.
inline Layout arbitrary_layout() {
  const auto pairs = *rc::gen::inRange<std::size_t>(0, 5);
  if (pairs == 0) return Layout::make(*rc::gen::inRange<std::uint32_t>(1, 65)).value();
  const auto half = *rc::gen::container<Bevies>(pairs, rc::gen::inRange<std::uint32_t>(2, 12));
  Bevies sizes = half;
  sizes.insert(sizes.end(), half.begin(), half.end());
  return layout_of(sizes);
}

}  // namespace pif::parity
