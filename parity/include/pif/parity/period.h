// The pattern in which a layout deals records out repeats: records n and n + period_of(layout) are on the same LFS, for
// all n, and every LFS holds as many of them as any other.
// Pure; any thread.
#pragma once

#include <cstdint>

#include "pif/parity/layout.h"

namespace pif::parity {

// In records: a multiple of the width, and the width itself without bevies. At most 2^40: Layout::make() refuses sizes
// of bevies that give more.
std::uint64_t period_of(const Layout& layout);

}  // namespace pif::parity
