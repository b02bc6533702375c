// The numbers at given places of the sorted order of all workers' numbers, without sorting any: their bits are found 8
// at a time, by histograms that the workers add up. So a number costs 16 KiB of messages per worker, however many there
// are. (Thesis 5.2.4: a reduction whose result is small.)
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/team.h"

namespace pif::summarize {

// Doubles as numbers that are in the same order: any two that are no NaN.
inline std::uint64_t sortable(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return (bits >> 63) != 0 ? ~bits : bits | std::uint64_t{1} << 63;
}
inline double from_sortable(std::uint64_t bits) {
  return std::bit_cast<double>((bits >> 63) != 0 ? bits & ~(std::uint64_t{1} << 63) : ~bits);
}

// The value at each of `places` (from 0, below their number) in all workers' `values` together: called by all workers,
// with the same places.
[[nodiscard]] Result<std::vector<std::uint64_t>> select(tool::Team& team, std::span<const std::uint64_t> values,
                                                        std::span<const std::uint64_t> places);

}  // namespace pif::summarize
