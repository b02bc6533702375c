// Answers: at once, or later with signs of life meanwhile; and what the counters say of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "gate.h"
#include "pif/base/clock.h"
#include "pif/net/calls.h"

namespace pif::lfs {

// One request of a peer while it is being handled.
struct Request {
  net::PeerId peer = 0;
  net::Packet packet;
  Requester who;
  Time arrived;
  Time deadline;  // its requester's

  const proto::Envelope& envelope() const { return packet.envelope; }
};

using ReplyToken = std::uint64_t;  // a request that is answered later; 0: none

class Replies {
 public:
  Replies(net::Messenger& messenger, std::string node) : messenger_(messenger), node_(std::move(node)), started_(now()) {}

  // A reply to fill in.
  static net::Packet reply(const Request& request) { return net::reply_to(request.envelope()); }
  void answer(const Request& request, Result<net::Packet> result);

  // Answered later, by answer(token, ...): until then the peer hears `working` each second. What is past its deadline or
  // whose peer is gone is dropped.
  ReplyToken defer(const Request& request);
  void answer(ReplyToken token, Status status);              // Done, or the error
  void answer(ReplyToken token, tl::unexpected<Error> error) { answer(token, Status(std::move(error))); }
  void answer(ReplyToken token, Result<net::Packet> result);  // result's id and version are filled in here
  bool is_waiting(ReplyToken token) const { return later_.contains(token); }

  void drop_peer(net::PeerId peer);
  void tick(Time now);
  Time next_deadline() const;

  proto::CountersReply counters() const;
  void send(net::PeerId peer, net::Packet packet);  // best effort: a peer that is gone gets nothing

 private:
  struct Later {
    net::PeerId peer = 0;
    std::uint64_t id = 0;
    int op = 0;
    Time arrived;
    Time deadline;
    Time next_sign;
  };
  struct Count {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t errors = 0;
    std::uint64_t total_us = 0;
    std::uint64_t max_us = 0;
  };
  Time now() const { return messenger_.clock().now(); }
  void end(std::unordered_map<ReplyToken, Later>::iterator at);
  void count(int op, Time arrived, std::uint64_t bytes, bool ok);

  net::Messenger& messenger_;
  std::string node_;
  Time started_;
  ReplyToken last_token_ = 0;
  std::unordered_map<ReplyToken, Later> later_;
  std::set<std::pair<Time, ReplyToken>> signs_;  // when something is due: a sign of life, or the deadline
  std::map<int, Count> counts_;            // by number of the operation
};

// "read" of the operation's number in Envelope.
std::string op_name(int op);

}  // namespace pif::lfs
