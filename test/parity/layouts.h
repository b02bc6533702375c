// Layouts to try, and plain arithmetic about bevies that does not go through the code under test.
#pragma once

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
