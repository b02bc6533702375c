// Requests under way: which reply belongs to which request, and whose time is up. A state machine over a Messenger:
// it sends, but never waits, so daemons use it inside their event loop and Caller (caller.h) wraps it for programs
// that wait. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "pif/net/messenger.h"

namespace pif::net {

using CallId = std::uint64_t;

// Patience with a peer that has said nothing at all (neither reply nor `working`).
inline constexpr Duration kSilenceMax = std::chrono::seconds(5);

class Calls {
 public:
  using OnReply = std::function<void(Result<Packet>)>;  // an Envelope.error arrives here as an Error

  explicit Calls(Messenger& messenger, std::uint64_t first_id = 1) : messenger_(messenger), next_id_(first_id) {}

  // Sends `request` (id and version are filled in here). on_reply is called exactly once, from offer(), expire() or
  // drop(), never from start(). The call fails with kTimeout after `timeout`, or earlier after kSilenceMax without any
  // sign of life (a `working` reply renews it), naming `peer_name`.
  CallId start(PeerId peer, Packet request, Duration timeout, std::string peer_name, OnReply on_reply);

  // Takes replies and lost peers. Returns false for what is not ours (a request from a peer).
  bool offer(Delivery& delivery);
  // Fails what is late. Call at or after next_deadline().
  void expire();
  Time next_deadline() const;  // kNever when nothing is under way
  // Forgets a call; its on_reply is not called.
  void forget(CallId id);
  std::size_t under_way() const { return calls_.size(); }

 private:
  struct Call {
    PeerId peer;
    std::string peer_name;
    Time deadline;     // the requester's
    Time patience;     // last sign of life + kSilenceMax
    OnReply on_reply;
  };
  void finish(CallId id, Result<Packet> result);
  void fail_unsent();

  Messenger& messenger_;
  CallId next_id_;
  std::unordered_map<CallId, Call> calls_;
  std::vector<std::pair<CallId, Error>> unsent_;  // failed in start(); reported by expire()
};

// ---- what a daemon's replies look like ----
// An empty reply to `request`, to be filled in.
Packet reply_to(const proto::Envelope& request);
Packet error_reply(const proto::Envelope& request, const Error& error, std::string_view node);
Error error_of(const proto::Error& error);
proto::Error proto_of(const Error& error, std::string_view node = {});

}  // namespace pif::net
