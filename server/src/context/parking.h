// Requests that wait until the server serves (again): it has just been started, or commits are held. Those who asked
// hear `working` each second.
#pragma once

#include <deque>
#include <functional>

#include "pif/base/clock.h"
#include "pif/net/messenger.h"

namespace pif::server {

class Parking {
 public:
  static constexpr std::size_t kMax = 16384;
  static constexpr Duration kSignEvery = std::chrono::seconds(1);

  // False, and the delivery stays the caller's, if it is full.
  bool add(net::Delivery& delivery, Time now);
  void drop(net::PeerId peer);
  // All of them, in the order in which they came.
  std::deque<net::Delivery> take();
  // For each whose time has come.
  void sign(Time now, const std::function<void(net::PeerId, std::uint64_t request)>& working);
  Time next_deadline() const;

 private:
  struct Waiting {
    net::Delivery delivery;
    Time next_sign;
  };
  std::deque<Waiting> waiting_;
};

}  // namespace pif::server
