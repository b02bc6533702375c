// Ctrl-C and SIGTERM as a question that loops ask, so that they can clean up.
#pragma once

#include "pif/base/result.h"

namespace pif::cli {

// The first SIGINT or SIGTERM from now on only makes check_interrupt() fail; a second one ends the process as usual.
void catch_interrupts();
// kCancelled after such a signal.
[[nodiscard]] Status check_interrupt();

}  // namespace pif::cli
