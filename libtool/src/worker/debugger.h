// A worker that a debugger is to be attached to.
#pragma once

#include <chrono>
#include <string_view>

#include "pif/base/clock.h"

namespace pif::tool {

inline constexpr Duration kDebuggerPatience = std::chrono::hours(24);  // of the others, who wait for it

// Says on stderr where this process is, and stops it (SIGSTOP): it goes on when somebody tells it to. who: for people.
void stop_for_debugger(std::string_view who);

}  // namespace pif::tool
