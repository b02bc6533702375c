#include "context/parking.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::server {

bool Parking::add(net::Delivery& delivery, Time now) {
  PIF_ASSERT(delivery.kind == net::Delivery::Kind::kPacket && delivery.peer != 0, delivery.kind, delivery.peer);
  if (waiting_.size() >= kMax) return false;
  waiting_.push_back({std::move(delivery), now + kSignEvery});
  return true;
}

void Parking::drop(net::PeerId peer) {
  std::erase_if(waiting_, [peer](const Waiting& one) { return one.delivery.peer == peer; });
}

std::deque<net::Delivery> Parking::take() {
  PIF_ASSERT(waiting_.size() <= kMax, waiting_.size());
  std::deque<net::Delivery> all;
  for (Waiting& one : waiting_) all.push_back(std::move(one.delivery));
  waiting_.clear();
  return all;
}

void Parking::sign(Time now, const std::function<void(net::PeerId, std::uint64_t)>& working) {
  for (Waiting& one : waiting_) {
    if (one.next_sign > now) continue;
    one.next_sign = now + kSignEvery;
    working(one.delivery.peer, one.delivery.packet.envelope.id());
  }
}

Time Parking::next_deadline() const {
  Time next = kNever;
  for (const Waiting& one : waiting_) next = std::min(next, one.next_sign);
  return next;
}

}  // namespace pif::server
