// Requests, and their answers: at once, or later with signs of life meanwhile; and what the counters say of them.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "pif/base/clock.h"
#include "pif/daemon/fibers.h"
#include "pif/net/calls.h"
#include "pif/net/stats.h"
#include "pif/net/turns.h"

namespace pif::daemon {

using ReplyToken = std::uint64_t;  // a request that is answered later; 0: none

// One request of a peer while it is being handled.
struct Request {
  net::PeerId peer = 0;
  net::Packet packet;
  Time arrived{};
  Time deadline{};       // its requester's
  ReplyToken token = 0;  // by Replies::defer()

  // The message of the request.
  const proto::Envelope& envelope() const { return packet.envelope; }
};

// The request that has come with this delivery.
Request request_of(net::Delivery& delivery, Time arrived);

class Replies {
 public:
  // Both outlive it, and fibers end first: one of them sends signs of life. node: who answers.
  Replies(net::Messenger& messenger, Fibers& fibers, std::string node);

  // From now on bytes that come and go are charged to their peers there. Outlives this; null: nowhere.
  void charge_to(net::Turns* turns) { turns_ = turns; }

  // A reply to fill in.
  static net::Packet reply(const Request& request) { return net::reply_to(request.envelope()); }
  // Sends the result, and fills in its id and version. A deferred request gets none past its deadline, or when its peer
  // is gone.
  void answer(const Request& request, Result<net::Packet> result);

  // The request is answered later: until then the peer hears `working` each second, up to its deadline.
  void defer(Request& request);
  // Whether nobody waits for the answer any more: it is deferred, and its deadline is past or its peer gone.
  bool is_dropped(const Request& request) const { return request.token != 0 && !later_.contains(request.token); }
  // The counters count so many requests besides, whose answers wait for the end of a turn.
  void count_waiting(std::size_t answers) { stats_.set_under_way(later_.size() + answers); }
  // So many requests are being worked on; not those that wait for what other processes do.
  std::size_t pending() const { return later_.size() - idle_; }

  // Its requests are dropped.
  void drop_peer(net::PeerId peer);

  // An answer that another part made: counted like the others. Best effort: a peer that is gone gets nothing.
  void send_answer(net::PeerId peer, net::Packet packet, int operation, Time arrived);

  // Node, requests and time; the rest is for others to fill in.
  proto::StatsReply stats() const;

 private:
  struct Later {
    net::PeerId peer = 0;
    std::uint64_t id = 0;
    int op = 0;
    Time deadline;
    Time next_sign;
  };
  Time now() const { return messenger_.clock().now(); }
  // On a fiber of its own, as long as this object lives.
  void send_signs();
  void send_sign(ReplyToken token, Later& later, Time now);
  // An operation of a peer has ended.
  void count(const Request& request, const Result<net::Packet>& result);
  void end(std::unordered_map<ReplyToken, Later>::iterator at);
  void send(net::PeerId peer, net::Packet packet);
  std::uint64_t uptime_ms() const;

  net::Messenger& messenger_;
  Fibers& fibers_;
  std::string node_;
  net::Turns* turns_ = nullptr;
  Time started_;
  ReplyToken last_token_ = 0;
  std::size_t idle_ = 0;  // of later_: those that wait for other processes
  std::unordered_map<ReplyToken, Later> later_;
  std::set<std::pair<Time, ReplyToken>> signs_;  // when something is due: a sign of life, or the deadline
  Event earlier_;                                // something is due before all that was
  net::Stats stats_;
};

}  // namespace pif::daemon
