// ZeroMQ's library, which is loaded when it is first needed: with what it needs itself it is twelve libraries, a third
// of what a process of ours costs to start; and most, a tool's workers among them, talk through Unix sockets alone.
#pragma once

#include "pif/base/result.h"

namespace pif::net {

// Before the first of ZeroMQ's functions is called. kUnsupported: this machine has none, or one before 4.3; the next
// call looks again. Any thread.
[[nodiscard]] Status load_zmq();

}  // namespace pif::net
