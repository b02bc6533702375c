// The calls of a daemon to others, each waited for by a fiber. A daemon has one, so ids of its requests are never the
// same. One thread, the daemon's loop.
#pragma once

#include <string>

#include "pif/daemon/fibers.h"
#include "pif/net/calls.h"

namespace pif::daemon {

class Caller {
 public:
  // Both outlive it, and fibers end first: one of them ends calls that are late.
  Caller(net::Messenger& messenger, Fibers& fibers);
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Asks the peer, and waits for its answer; errors as net::Calls::start() says. Called by a fiber.
  [[nodiscard]] Result<net::Packet> call(net::PeerId peer, net::Packet request, Duration timeout,
                                         std::string peer_name);
  // Takes what has come, as net::Calls::offer().
  bool offer(net::Delivery& delivery);

  // For a state machine over the calls, such as access::LfsLinks. Whoever starts some says so by note_started().
  net::Calls& calls() { return calls_; }
  // Calls were started: the time at which the first one is late may be another.
  void note_started() { started_.notify(); }
  // A call has ended, or a peer is gone; or that state machine has something to do.
  Event& news() { return news_; }

 private:
  // On a fiber of its own, as long as this object lives.
  void expire();

  Fibers& fibers_;
  net::Calls calls_;
  Event started_;
  Event news_;
};

}  // namespace pif::daemon
