// The LFSs that keep a file's length beside its LFS 0. Pure; any thread.
#pragma once

#include "pif/base/assert.h"
#include "pif/parity/layout.h"

namespace pif::parity {

// The first LFS of the bevy that is companion to LFS 0's: in the other half of a pair, so that both are lost only with
// two LFSs of it. layout: with parity.
inline LfsIndex deputy_of(const Layout& layout) {
  PIF_ASSERT(layout.has_parity(), layout.width());
  LfsIndex first = 0;
  for (const std::uint32_t size : layout.bevies().first(layout.bevies().size() / 2)) first += size;
  return first;
}

}  // namespace pif::parity
