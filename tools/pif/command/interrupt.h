// Ctrl-C, SIGTERM and SIGHUP as a flag that long work looks at, so that it can clean up.
#pragma once

#include <atomic>

#include "pif/base/result.h"

namespace pif::cli {

// The first SIGINT, SIGTERM or SIGHUP from now on only sets the flag; a second one ends the process as usual. One that
// is ignored, as behind nohup, stays so.
const std::atomic<bool>& catch_interrupts();
// kCancelled once the flag is set.
[[nodiscard]] Status check_interrupt();
// For the end of main, when all is cleaned up: the process dies of the signal that set the flag, so that a shell knows
// it and ends its script. Returns if none came.
void die_of_interrupt();

}  // namespace pif::cli
