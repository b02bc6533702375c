// The loop of a daemon. It goes round in turns: what has come is taken, within bounds; all fibers go on until each
// waits; then the turn ends, and what it has changed becomes durable and is answered. Each timer is a fiber that
// sleeps, so fibers alone say when the next turn begins. One thread.
#pragma once

#include <atomic>

#include "pif/base/result.h"
#include "pif/daemon/fibers.h"
#include "pif/net/turns.h"

namespace pif::daemon {

// A daemon does these in its turns.
class TurnHandler {
 public:
  // The messenger has waited: the clock is looked at now.
  virtual void begin_turn() = 0;
  // One delivery. Its handling may go on in a fiber.
  virtual void take(net::Turns::Arrival& arrival) = 0;
  // Whether this turn takes more of what is there.
  virtual bool has_room() const = 0;
  // All fibers wait. Whether something is left that needs another turn at once. An error ends the loop.
  [[nodiscard]] virtual Result<bool> end_turn() = 0;

 protected:
  ~TurnHandler() = default;
};

class Loop {
 public:
  // All outlive it. deliveries_max: of one turn, at least 1.
  Loop(net::Turns& turns, Fibers& fibers, TurnHandler& handler, unsigned deliveries_max);

  // Goes round until `stop` is set and the messenger woken. An error of the transport, kCancelled too, or of a turn
  // ends it; what had come before is answered.
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  [[nodiscard]] Status take_more(const std::atomic<bool>& stop);

  net::Turns& turns_;
  Fibers& fibers_;
  TurnHandler& handler_;
  const unsigned deliveries_max_;
};

}  // namespace pif::daemon
