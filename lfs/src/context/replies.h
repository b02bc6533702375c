// Answers: at once, or later with signs of life meanwhile; and what the counters say of them.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "context/authorizer.h"
#include "pif/base/clock.h"
#include "pif/net/calls.h"
#include "pif/net/stats.h"
#include "pif/net/turns.h"

namespace pif::lfs {

// One request of a peer while it is being handled.
struct Request {
  net::PeerId peer = 0;
  net::Packet packet;
  Requester who;
  Time arrived;
  Time deadline;          // its requester's
  Capability capability;  // as far as the operation needs one: verified

  const proto::Envelope& envelope() const { return packet.envelope; }
};

using ReplyToken = std::uint64_t;  // a request that is answered later; 0: none

class Replies {
 public:
  Replies(net::Messenger& messenger, std::string node)
      : messenger_(messenger), node_(std::move(node)), started_(now()) {}

  // From now on bytes that come and go are charged to their peers there. Outlives this; null: nowhere.
  void charge_to(net::Turns* turns) { turns_ = turns; }

  // A reply to fill in.
  static net::Packet reply(const Request& request) { return net::reply_to(request.envelope()); }
  // The result's id and version are filled in.
  void answer(const Request& request, Result<net::Packet> result);

  // Answered later, by answer(token, ...): until then the peer hears `working` each second. What is past its deadline
  // or whose peer is gone is dropped.
  ReplyToken defer(const Request& request);
  void answer(ReplyToken token, Status status);  // Done, or the error
  void answer(ReplyToken token, tl::unexpected<Error> error) { answer(token, Status(std::move(error))); }
  void answer(ReplyToken token, Result<net::Packet> result);  // result's id and version are filled in here
  bool is_waiting(ReplyToken token) const { return later_.contains(token); }
  // So many requests are being worked on; not those that wait for what other processes do.
  std::size_t pending() const { return later_.size() - idle_; }

  void drop_peer(net::PeerId peer);
  void tick(Time now);
  Time next_deadline() const;

  // An answer that another part made: counted like the others. Best effort: a peer that is gone gets nothing.
  void send_answer(net::PeerId peer, net::Packet packet, int operation, Time arrived);

  proto::StatsReply stats() const;  // node, requests and time; the rest is for others to fill in

 private:
  struct Later {
    net::PeerId peer = 0;
    std::uint64_t id = 0;
    int op = 0;
    std::uint64_t bytes_in = 0;
    Time arrived;
    Time deadline;
    Time next_sign;
  };
  Time now() const { return messenger_.clock().now(); }
  // An operation of a peer has ended.
  void count(net::PeerId peer, int operation, std::uint64_t bytes_in, const Result<net::Packet>& result, Time arrived);
  void end(std::unordered_map<ReplyToken, Later>::iterator at);
  void send(net::PeerId peer, net::Packet packet);
  std::uint64_t uptime_ms() const;

  net::Messenger& messenger_;
  std::string node_;
  net::Turns* turns_ = nullptr;
  Time started_;
  ReplyToken last_token_ = 0;
  std::size_t idle_ = 0;  // of later_: those that wait for other processes
  std::unordered_map<ReplyToken, Later> later_;
  std::set<std::pair<Time, ReplyToken>> signs_;  // when something is due: a sign of life, or the deadline
  net::Stats stats_;
};

}  // namespace pif::lfs
