// A process that goes on in the background once it has begun its work: whoever started it waits for that.
#pragma once

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::mount {

// Starts this program once more with the same words, and "--report-to FD" before them; waits until that process has
// begun its work, or failed: its exit code.
[[nodiscard]] Result<int> start_in_background(int argc, char** argv);
// In that process: the work has begun, or has failed with this exit code. Standard streams are closed if it has begun.
void report_to(UniqueFd starter, int exit_code);

}  // namespace pif::mount
