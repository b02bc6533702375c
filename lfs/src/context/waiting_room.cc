#include "context/waiting_room.h"

#include "pif/base/assert.h"

namespace pif::lfs {

bool WaitingRoom::add(net::Delivery& delivery, Time now) {
  if (waiting_.size() >= kMax || bytes_ + delivery.packet.body.size() > kBytesMax) return false;
  bytes_ += delivery.packet.body.size();
  waiting_.push_back({std::move(delivery), now + kPatience});
  PIF_ASSERT(waiting_.size() <= kMax && bytes_ <= kBytesMax, waiting_.size(), bytes_);
  return true;
}

void WaitingRoom::drop(net::PeerId peer) {
  std::erase_if(waiting_, [&](const Waiting& one) {
    if (one.delivery.peer != peer) return false;
    PIF_ASSERT(bytes_ >= one.delivery.packet.body.size(), bytes_);
    bytes_ -= one.delivery.packet.body.size();
    return true;
  });
}

std::deque<net::Delivery> WaitingRoom::take_all() { return take_late(kNever); }

std::deque<net::Delivery> WaitingRoom::take_late(Time now) {
  std::deque<net::Delivery> out;
  while (!waiting_.empty() && waiting_.front().until <= now) {
    PIF_ASSERT(bytes_ >= waiting_.front().delivery.packet.body.size(), bytes_);
    bytes_ -= waiting_.front().delivery.packet.body.size();
    out.push_back(std::move(waiting_.front().delivery));
    waiting_.pop_front();
  }
  return out;
}

}  // namespace pif::lfs
