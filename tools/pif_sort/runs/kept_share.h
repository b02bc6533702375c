// A worker's share of the result where records are put out one component after another and there is memory for it.
#pragma once

#include <span>
#include <vector>

#include "runs/output.h"

namespace pif::sort {

// The records at these positions of the result, in order, found on all of the worker's threads. unique: as ShareWalk.
// runs: of all workers; layout: of the input.
[[nodiscard]] Result<std::vector<Pick>> find_share(tool::Worker& worker, const KeyMaker& maker,
                                                   const parity::Layout& layout, std::span<const RunView> runs,
                                                   Range range, bool unique);

}  // namespace pif::sort
