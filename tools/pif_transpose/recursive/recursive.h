// The recursive transpose, figures 5.13 and 5.15 of the thesis: quarters of the matrix change places, then quarters of
// these, pass after pass, until a band of rows fits into memory, where its grains are transposed. Rows wait in scratch
// files meanwhile.
#pragma once

#include "matrix/cost.h"
#include "pif/tool/team.h"
#include "recursive/recursive_plan.h"

namespace pif::transpose {

// Called by all workers.
[[nodiscard]] Result<Phases> transpose_recursively(tool::Worker& worker, tool::Team& team, tool::Input& input,
                                                   tool::Output& output, const RecursivePlan& plan);

}  // namespace pif::transpose
