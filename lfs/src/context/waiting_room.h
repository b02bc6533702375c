// Requests that came before the server has admitted this LFS. They wait a little, as what is done then takes
// milliseconds.
#pragma once

#include <deque>

#include "context/request.h"

namespace pif::lfs {

class WaitingRoom {
 public:
  static constexpr std::size_t kMax = 4096;            // requests
  static constexpr std::size_t kBytesMax = 64u << 20;  // of their bodies
  static constexpr Duration kPatience = std::chrono::seconds(3);

  // False if there is no room.
  bool add(net::Delivery& delivery, Time now);
  void drop(net::PeerId peer);
  std::deque<net::Delivery> take_all();
  // Those that have waited for too long.
  std::deque<net::Delivery> take_late(Time now);
  Time next_deadline() const { return waiting_.empty() ? kNever : waiting_.front().until; }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    net::Delivery delivery;
    Time until;
  };
  std::deque<Waiting> waiting_;  // by `until`
  std::size_t bytes_ = 0;
};

}  // namespace pif::lfs
