#include "pif/parity/period.h"

#include <numeric>

namespace pif::parity {

// A bevy of size B gets B of `width` records, and deals them in the same way again after B (B - 1).
std::uint64_t period_of(const Layout& layout) {
  std::uint64_t cycles = 1;
  for (const std::uint32_t size : layout.bevies()) cycles = std::lcm(cycles, std::uint64_t{size} - 1);
  return cycles * layout.width();
}

}  // namespace pif::parity
