// The direct transpose: one read, one exchange, one write. Every worker transposes tiles of the rows on its own LFS:
// what becomes of column c of them is a piece of output row c, with every p-th of its elements. The pieces meet at the
// row's destination, which weaves them (matrix/weave.h).
//
// A stripe of columns is done at a time, as wide as memory allows; each waits for the one before it. Between workers on
// one machine pieces go straight into the destination's window; else they go as messages, of which two at most are
// under way from each to each.
#pragma once

#include "direct/direct_plan.h"
#include "pif/tool/team.h"

namespace pif::transpose {

// Seconds of a worker: reading and transposing its rows; putting rows together and writing them; and waiting for
// others.
struct DirectTimes {
  double transpose = 0, put_together = 0, wait = 0;
};

// Called by all workers.
[[nodiscard]] Result<DirectTimes> transpose_directly(tool::Worker& worker, tool::Team& team, tool::Input& input,
                                                     tool::Output& output, const DirectPlan& plan);

}  // namespace pif::transpose
