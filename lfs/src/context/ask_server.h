// Questions to the PIF Server by who waits for the answer.
#pragma once

#include <functional>

#include "pif/base/result.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

// Called by a fiber. kUnavailable, perhaps at once: there is no server at present.
using AskServer = std::function<Result<net::Packet>(net::Packet packet)>;

}  // namespace pif::lfs
