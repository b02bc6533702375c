// Questions to the PIF Server by who waits for the answer.
#pragma once

#include <functional>
#include <utility>

#include "parity/rebuild.h"
#include "pif/daemon/fibers.h"

namespace pif::lfs {

// Called by a fiber. kUnavailable: there is no server at present.
using AskServer = std::function<Result<net::Packet>(net::Packet packet)>;

// fibers outlives what it returns.
inline AskServer ask_and_wait(daemon::Fibers& fibers, Rebuild::Ask ask) {
  return [&fibers, ask = std::move(ask)](net::Packet packet) {
    return daemon::await<Result<net::Packet>>(fibers,
                                              [&](auto answered) { ask(std::move(packet), std::move(answered)); });
  };
}

}  // namespace pif::lfs
