#include "pif/daemon/caller.h"

#include "pif/base/assert.h"

namespace pif::daemon {

Caller::Caller(net::Messenger& messenger, Fibers& fibers)
    : fibers_(fibers), calls_(messenger), started_(fibers), news_(fibers) {
  fibers_.start<&Caller::expire>(*this);
}

Result<net::Packet> Caller::call(net::PeerId peer, net::Packet request, Duration timeout, std::string peer_name) {
  PIF_ASSERT(peer != 0 && fibers_.in_fiber(), peer);
  return await<Result<net::Packet>>(fibers_, [&](auto done) {
    calls_.start(peer, std::move(request), timeout, std::move(peer_name), std::move(done));
    note_started();
  });
}

bool Caller::offer(net::Delivery& delivery) {
  const std::size_t before = calls_.under_way();
  const bool is_taken = calls_.offer(delivery);
  PIF_ASSERT(calls_.under_way() <= before || is_taken, before, calls_.under_way());
  if (calls_.under_way() != before || delivery.kind == net::Delivery::Kind::kClosed) news_.notify();
  return is_taken;
}

void Caller::expire() {
  for (;;) {
    started_.wait(calls_.next_deadline());
    const std::size_t before = calls_.under_way();
    calls_.expire();
    if (calls_.under_way() != before) news_.notify();
  }
}

}  // namespace pif::daemon
