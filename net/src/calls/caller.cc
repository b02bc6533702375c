#include "pif/net/caller.h"
#include "pif/base/assert.h"

#include <algorithm>
#include <utility>

namespace pif::net {

Caller::Caller(Messenger& messenger, std::uint64_t first_id, std::function<void(Delivery&)> unasked)
    : messenger_(messenger), calls_(messenger, first_id), unasked_(std::move(unasked)) {}

CallId Caller::start(PeerId peer, Packet request, Duration timeout, std::string peer_name) {
  // The id is only known when start() returns, and on_reply never runs before that.
  auto id = std::make_shared<CallId>(0);
  *id = calls_.start(peer, std::move(request), timeout, std::move(peer_name),
                     [this, id](Result<Packet> result) { done_.insert_or_assign(*id, std::move(result)); });
  done_.erase(*id);  // of a request that had the same id, and for which nobody waited
  return *id;
}

Result<Packet> Caller::wait(CallId id) {
  while (!done_.contains(id)) {
    if (!calls_.is_under_way(id))
      return fail(Code::kInternal, "waiting for a request that was never sent, or was forgotten");
    if (auto status = pump(kNever); !status) {
      forget(id);
      return fail(std::move(status.error()));
    }
  }
  PIF_ASSERT(!calls_.is_under_way(id), id);
  auto node = done_.extract(id);
  return std::move(node.mapped());
}

Result<Packet> Caller::call(PeerId peer, Packet request, Duration timeout, std::string peer_name) {
  return wait(start(peer, std::move(request), timeout, std::move(peer_name)));
}

bool Caller::is_done(CallId id) const { return done_.contains(id); }

Status Caller::pump(Time deadline) {
  const std::size_t before = calls_.under_way();
  for (;;) {
    calls_.expire();
    if (calls_.under_way() < before) return {};
    Time until = std::min(deadline, calls_.next_deadline());
    if (wants_to_stop_ && deadline > Time{}) {
      PIF_TRY(check_stop());
      until = std::min(until, ask_at_);
    }
    PIF_TRY_VALUE(auto delivery, messenger_.receive(until));
    if (!delivery) {
      if (until == deadline) return {};
      continue;
    }
    if (!calls_.offer(*delivery)) {
      if (unasked_) unasked_(*delivery);
      return {};
    }
  }
}

// Once it is to end, each further wait asks at once: of many calls none is waited for any more.
Status Caller::check_stop() {
  const Time now = messenger_.clock().now();
  if (now < ask_at_) return {};
  if (wants_to_stop_()) return fail(Code::kCancelled, "the wait was ended, for that was asked for");
  ask_at_ = now + kAskEvery;
  return {};
}

void Caller::forget(CallId id) {
  calls_.forget(id);
  done_.erase(id);
}

}  // namespace pif::net
