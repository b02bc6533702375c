// Questions that a person answers before something is done.
#pragma once

#include <string>

#include "pif/base/result.h"

namespace pif::cli {

// Whether there is a person: stdin and stderr are a terminal.
bool can_ask();
// Asks on stderr until the answer is yes or no. kCancelled, with `otherwise` in its text, for no, and for an answer
// that does not come.
[[nodiscard]] Status confirm(const std::string& question, const std::string& otherwise);

}  // namespace pif::cli
