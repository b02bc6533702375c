#include "pif/daemon/loop.h"

#include "pif/base/assert.h"

namespace pif::daemon {

Loop::Loop(net::Turns& turns, Fibers& fibers, TurnHandler& handler, unsigned deliveries_max)
    : turns_(turns), fibers_(fibers), handler_(handler), deliveries_max_(deliveries_max) {
  PIF_ASSERT(deliveries_max > 0);
}

Status Loop::serve(const std::atomic<bool>& stop) {
  bool goes_on = true;  // the first turn begins at once
  while (!stop.load(std::memory_order_acquire)) {
    auto first = turns_.receive(goes_on ? Time::min() : fibers_.next_deadline());
    if (!first && stop.load(std::memory_order_acquire)) return {};
    if (!first) return fail(std::move(first.error()));
    handler_.begin_turn();
    if (*first) {
      handler_.take(**first);
      PIF_TRY(take_more(stop));
    }
    fibers_.run();
    PIF_TRY_VALUE(goes_on, handler_.end_turn());
    PIF_ASSERT(!fibers_.in_fiber());
  }
  return {};
}

// The deliveries that are there already share the turn.
Status Loop::take_more(const std::atomic<bool>& stop) {
  for (unsigned taken = 1; taken < deliveries_max_ && handler_.has_room(); ++taken) {
    if (stop.load(std::memory_order_acquire)) return {};
    auto more = turns_.receive(Time::min());
    if (!more && more.error().code == Code::kCancelled) return {};  // the next wait says so, too
    if (!more) return fail(std::move(more.error()));
    if (!*more) return {};
    handler_.take(**more);
  }
  return {};
}

}  // namespace pif::daemon
