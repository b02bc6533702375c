// ZeroMQ's library, which is loaded when it is first needed. Any thread.
#pragma once

#include "pif/base/result.h"

namespace pif::net {

// Whoever calls the first of ZeroMQ's functions asks this before. kUnsupported: this machine has no such library.
[[nodiscard]] Status load_zmq();

}  // namespace pif::net
