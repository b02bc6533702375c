#include "pif/base/placement.h"

#include <algorithm>

namespace pif {

std::uint64_t Placement::rows(LfsIndex lfs, std::uint64_t records) const {
  const std::uint64_t cycle = block_ * width_;
  const std::uint64_t rest = records % cycle;
  const std::uint64_t before = block_ * lfs;
  return records / cycle * block_ + (rest > before ? std::min(rest - before, block_) : 0);
}

}  // namespace pif
