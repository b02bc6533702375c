// Requests under way: which reply belongs to which request, and whose time is up. A state machine over a Messenger:
// it sends, but never waits, so daemons use it inside their event loop and Caller (caller.h) wraps it for programs
// that wait. Not thread-safe.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pif/base/timers.h"
#include "pif/net/messenger.h"
#include "pif/net/stats.h"
#include "pif/wire/operations.h"

namespace pif::net {

using CallId = std::uint64_t;

class Calls {
 public:
  using OnReply = std::function<void(Result<Packet>)>;  // an Envelope.error arrives here as an Error

  // messenger outlives it. first_id: ids of requests count up from it; not 0.
  explicit Calls(Messenger& messenger, std::uint64_t first_id = 1) : messenger_(messenger), next_id_(first_id) {}

  // Sends `request` (version, timeout and id are filled in here; an id that is set already is kept, so that a request
  // sent again is recognised). on_reply is called exactly once, from offer() or expire(), never from start(); it may
  // start and forget calls. The call fails with kTimeout after `timeout`, or earlier when the peer has been silent for
  // kSilenceMax (any packet of it is a sign of life, a `working` reply too), naming `peer_name`; with kUnavailable or
  // kTooLarge if it cannot be sent. With no time left (`timeout` is not above zero) nothing is sent. An error of the
  // connection has no node; one that the peer has sent has: its own, or `peer_name`.
  CallId start(PeerId peer, Packet request, Duration timeout, std::string peer_name, OnReply on_reply);

  // Takes replies: true, also for one that comes too late. A reply that does not belong to what was asked
  // (wire::kOperations) is kInternal. Fails the calls of a lost peer with kUnavailable, but returns
  // false for kClosed, because others keep state about peers too; and for requests and wakes, which are not ours.
  bool offer(Delivery& delivery);
  // Fails what is late. Call at or after next_deadline(). A caller that comes more than kCameLate after it was stopped,
  // or busy, and answers may lie unread: nothing is late before the same time has passed again.
  void expire();
  Time next_deadline() const;  // kNever when nothing is under way
  // Forgets a call; its on_reply is not called.
  void forget(CallId id);
  // How many calls, and whether this one, have been started and neither ended nor been forgotten.
  std::size_t under_way() const { return calls_.size(); }
  bool is_under_way(CallId id) const { return calls_.contains(id); }
  // From now on every call that ends is counted there (bytes_in: of replies). Outlives this; null: nowhere.
  void measure(Stats* stats) { stats_ = stats; }

 private:
  struct Call {
    PeerId peer;
    std::string peer_name;
    Time started;
    Duration timeout;  // the requester's
    Time deadline;
    Time patience;  // last known sign of life + kSilenceMax
    OnReply on_reply;
    Time due{};  // its place in due_: never later than the earlier of the two
    int operation = 0;
    std::uint64_t bytes_out = 0;
  };
  struct Peer {
    Time heard{};  // last sign of life; looked at when a call's patience ends, not at every packet
    std::size_t under_way = 0;
  };
  void finish(CallId id, Result<Packet> result);
  void fail_unsent();
  void fail_peer(PeerId peer);

  Messenger& messenger_;
  Stats* stats_ = nullptr;
  Time now_{};  // when the clock was last looked at
  CallId next_id_;
  std::unordered_map<CallId, Call> calls_;
  std::unordered_map<PeerId, Peer> peers_;  // with calls under way
  std::set<std::pair<Time, CallId>> due_;
  std::vector<std::pair<CallId, Error>> unsent_;  // failed in start(); reported by expire()
};

// Whether this is an answer (a result, an error or `working`) and not a request.
bool is_reply(const proto::Envelope& envelope);

// ---- what a daemon's replies look like ----
// An empty reply to `request`, with its id and this program's protocol version, to be filled in; and one that is an
// error. node: the daemon that says so, where the error names no other.
Packet reply_to(const proto::Envelope& request);
Packet error_reply(const proto::Envelope& request, const Error& error, std::string_view node);

// ---- by type ----
// A packet with this request.
template <wire::Request R>
Packet packet_of(R request) {
  Packet packet;
  wire::OperationOf<R>::add_request(packet.envelope) = std::move(request);
  return packet;
}
// The reply to a request of type R, out of a packet that Calls gave for it; errors are handed on. A body and handles
// are dropped: who wants these takes the packet.
template <wire::Request R>
Result<wire::ReplyTo<R>> reply_in(Result<Packet> packet) {
  if (!packet) return fail(std::move(packet.error()));
  return std::move(wire::OperationOf<R>::add_reply(packet->envelope));
}

}  // namespace pif::net
