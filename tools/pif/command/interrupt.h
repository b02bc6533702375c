// Ctrl-C and SIGTERM as a flag that long work looks at, so that it can clean up.
#pragma once

#include <atomic>

#include "pif/base/result.h"

namespace pif::cli {

// The first SIGINT or SIGTERM from now on only sets the flag; a second one ends the process as usual.
const std::atomic<bool>& catch_interrupts();
// kCancelled once the flag is set.
[[nodiscard]] Status check_interrupt();

}  // namespace pif::cli
