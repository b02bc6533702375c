// The requests of a daemon's peers, in turn (docs/PROTOCOL.md "Turns"): one that asks for much does not hold up others
// who ask for little, whatever connections they have. It stands between the messenger and the daemon's loop. Everything
// that has come is taken in, up to a bound, and handed out peer by peer (fair_queue.h). One thread, the messenger's.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pif/net/fair_queue.h"
#include "pif/net/messenger.h"

namespace pif::net {

class Turns {
 public:
  static constexpr std::size_t kPeerRequestsMax = 4096;      // of one peer: more are refused
  static constexpr std::uint64_t kPeerBytesMax = 28u << 20;  // the same; a window and the longest record
  static constexpr std::size_t kRequestsMax = 16384;         // of all: more are not read
  static constexpr std::uint64_t kBytesMax = 32u << 20;      // the same
  static constexpr std::size_t kPeersDescribedMax = 64;      // of StatsReply

  struct Arrival {
    Delivery delivery;
    Time arrived;  // when it was taken in
  };

  // messenger outlives it, and nobody else receives from it. node: who refuses what is too much.
  Turns(Messenger& messenger, std::string node) : messenger_(messenger), node_(std::move(node)) {}

  // As Messenger::receive(). Requests come in turn, those of one peer in their order; answers, wakes and closed
  // connections come before all of them. Requests that a peer sent before it closed its connection come before that,
  // but for reads, which nobody waits for any more. Requests of one peer above the limits are refused with kBusy.
  Result<std::optional<Arrival>> receive(Time deadline);
  // Takes in what is there, or what comes first by the deadline, and hands out nothing.
  Status take_in(Time deadline);
  // Charges the peer of what was handed out so many bytes: scanned, received and sent.
  void charge(PeerId peer, std::uint64_t bytes);
  // Nothing of it is handed out any more.
  void drop(PeerId peer);
  // The cost of all that was handed out so far.
  std::uint64_t cost() const { return cost_; }

  // The peer's name, for people. It is forgotten with its connection.
  void introduce(PeerId peer, std::string_view program, std::uint32_t uid);
  // Fills in peers and peers_waiting.
  void describe(proto::StatsReply& reply) const;

 private:
  struct Known {
    std::string program;
    std::uint32_t uid = 0;
    std::uint64_t served_bytes = 0;
  };
  struct Request {
    Packet packet;
    Time arrived;
  };
  bool is_full() const { return requests_.size() >= kRequestsMax || requests_.bytes() >= kBytesMax; }
  bool has_any() const { return !at_once_.empty() || !requests_.empty(); }
  // Each: whether to go on taking in.
  bool take(Delivery delivery);
  bool take_request(Delivery delivery);
  bool take_closed(Delivery delivery);
  bool refuse_above_limits(const Delivery& delivery, std::uint64_t bytes);
  Arrival next();
  Time now() const { return messenger_.clock().now(); }

  Messenger& messenger_;
  const std::string node_;
  FairQueue<Request> requests_;
  std::deque<Arrival> at_once_;  // goes out before all requests; while there is some, nothing is received
  std::uint64_t cost_ = 0;
  std::uint64_t cost_at_look_ = 0;  // at what has come
  std::unordered_map<PeerId, Known> known_;
};

}  // namespace pif::net
