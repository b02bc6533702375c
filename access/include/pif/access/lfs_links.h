// Connections to LFSs: who is connected, how much each lets us have under way, and where one is that was started again.
// It asks no server and never waits: it is driven by whoever runs the net::Calls (offer, expire), and what is not ready
// yet says so.
//
// Invariants:
//   1. At most one Hello is under way for each LFS and kind of connection.
//   2. The bytes under way to an LFS (Outstanding) are the sum over all Requests; it never goes below zero.
// Thread-safety: none; the thread of the messenger.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/net/calls.h"
#include "pif/net/messenger.h"

namespace pif::access {

class Requests;

// Largest body, in either direction, that is sent over a Unix socket's packets.
inline constexpr std::size_t kSmallBodyBytes = 96u << 10;

// A connection to one LFS that has answered Hello.
struct Link {
  net::PeerId peer = 0;
  std::uint32_t node = 0;             // NodeId
  std::string name;                   // "lfs0"
  std::uint64_t window_bytes = 0;     // bulk bytes we may have outstanding there
  std::uint64_t window_requests = 0;  // the same, counted in requests
  bool passes_descriptors = false;    // same machine, Unix socket (or simulated)
  bool small_packets = false;         // a Unix socket: bulk goes over a second connection (ZeroMQ)
  std::uint64_t generation = 0;  // rises with every new connection to the node: descriptors of an older one are stale
};

// Requests under way to one LFS, over all operations.
struct Outstanding {
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
};

// A fault of the connection, as opposed to an answer of the peer.
inline bool is_lost(Code code) { return code == Code::kUnavailable || code == Code::kTimeout; }

class LfsLinks {
 public:
  struct Options {
    net::Route route = net::Route::kAuto;
    std::string program;  // the name that LFSs get
    Duration timeout{};   // of a Hello, and of requests that say nothing else
  };
  // Asks whoever knows where LFSs are now and tells it by learn(). Whether this one is elsewhere than was known. May
  // take `patience`; called from link() and found_elsewhere() only.
  using FindAgain = std::function<bool(const proto::NodeInfo& node, Duration patience)>;

  // messenger and calls outlive it. All Requests end before it.
  LfsLinks(net::Messenger& messenger, net::Calls& calls, Options options);
  ~LfsLinks();
  LfsLinks(const LfsLinks&) = delete;
  LfsLinks& operator=(const LfsLinks&) = delete;

  // The caller: packed Credential, in the envelope of every request.
  void set_credential(std::string packed) { credential_ = std::move(packed); }
  // Requests bear ids from here on, for a process that shares its session with others. Else they are numbered by Calls.
  void count_from(net::CallId first) { next_id_ = first; }
  net::CallId take_id() { return next_id_ == 0 ? 0 : next_id_++; }
  const std::string& credential() const { return credential_; }
  // LFSs of other file systems are refused (kInvalid), as is another LFS than the one that was asked for: a Unix socket
  // may be another's, then tcp is tried. Empty: any.
  void set_cluster(std::string id) { cluster_ = std::move(id); }
  // Gets another credential and sets it: whether it could. Called from link(), of an LFS that refuses the one there is.
  // Empty: nobody can.
  void set_renew_credential(std::function<bool()> renew) { renew_credential_ = std::move(renew); }
  // Empty: LFSs do not move.
  void set_find_again(FindAgain find_again) { find_again_ = std::move(find_again); }

  // The LFS: connected, and Hello'd. `bulk`: able to carry bulk messages; the same connection unless that is a Unix
  // socket. Null: its Hello is under way; ask again when a call has ended. The link is valid until the next call here.
  // kUnavailable, kTimeout: it cannot be reached. A caller that has waited for it in vain does not wait again at once:
  // for kSilenceIsNews the same error is said without another try.
  [[nodiscard]] Result<const Link*> link(const proto::NodeInfo& node, bool bulk = false);
  // Whether there is a connection that has answered Hello.
  bool has(std::uint32_t node_id) const { return links_.contains(node_id); }
  // A connection that there is already, and needs no Hello: a worker is born with one to its LFS.
  void adopt(std::uint32_t node_id, std::string name, net::PeerId peer, std::uint64_t window_bytes);
  // The peer of the present connection; 0: none.
  net::PeerId peer_of(std::uint32_t node_id) const;
  // Forgets the connection over `peer` (it is broken, or the node does not answer); the next request makes a new one.
  // One that was made since then stays: others have requests under way over it.
  void drop(std::uint32_t node_id, net::PeerId peer);
  // The transport says that this peer is gone: Delivery::kClosed. Peers of others change nothing.
  void closed(net::PeerId peer);

  static constexpr Duration kSilenceIsNews = std::chrono::seconds(2);

  // For whoever can do without an LFS: one that could not be reached within the last kAwayFor is passed over. Only a
  // try that failed counts, or the server's word: being passed over is no failure. It ends early when the LFS answers.
  static constexpr Duration kAwayFor = std::chrono::seconds(5);
  void note_away(std::uint32_t node_id) { away_[node_id] = clock().now(); }
  // The server says that it is down. Ignored if it is connected and has answered since.
  void note_said_down(std::uint32_t node_id) {
    if (!has(node_id) || away_.contains(node_id)) note_away(node_id);
  }
  void note_there(std::uint32_t node_id) {
    if (!away_.empty()) away_.erase(node_id);
  }
  // All are asked again: who takes part has changed, or nobody else can answer.
  void forget_away() { away_.clear(); }
  bool was_away(std::uint32_t node_id) const {
    const auto found = away_.find(node_id);
    return found != away_.end() && messenger_.clock().now() - found->second < kAwayFor;
  }
  // Whether any was away and has not answered since.
  bool has_away() const { return !away_.empty(); }
  // How many requests have passed over an LFS that was away.
  std::uint64_t passed_over() const { return passed_over_; }
  void note_passed_over() { ++passed_over_; }

  // Where the LFS is by now.
  void learn(const proto::NodeInfo& node) { moved_[node.id()] = node.endpoints(); }
  // As last learnt, else those of `node`; valid until the next learn(), and no longer than `node`.
  const proto::Endpoints& endpoints_of(const proto::NodeInfo& node) const;
  // For a request over `peer` that was not answered: whether the LFS has another address by now, as one has that was
  // started again and listens on tcp. There must be time left to ask; the next request goes there.
  bool found_elsewhere(const proto::NodeInfo& node, net::PeerId peer, Duration left);

  // Its credit limits these: Link::window_bytes and window_requests. Counted by whoever sends, for as long as the
  // request is under way. Valid as long as this object.
  Outstanding& outstanding(std::uint32_t node_id) { return outstanding_[node_id]; }
  // All bulk under way: Requests add and remove themselves. A caller that waits for credit receives replies of others
  // too, so that none keeps its credit; collect_others(): whether anything had come.
  void add(Requests& requests) { requests_.push_back(&requests); }
  void remove(Requests& requests);
  bool collect_others(const Requests& waiting);

  // Those of the constructor. timeout(): of requests that say nothing else.
  net::Calls& calls() { return calls_; }
  Clock& clock() { return messenger_.clock(); }
  Duration timeout() const { return options_.timeout; }

 private:
  struct Hello {
    net::PeerId peer = 0;
    net::CallId call = 0;
    bool second = false;  // after the LFS was looked up, or with another credential
    net::Route route = net::Route::kAuto;
    bool is_stranger = false;     // another LFS, or one of another file system, answered
    std::optional<Status> ended;  // ok: the link is there
    Time ended_at{};
  };
  using HelloKey = std::pair<std::uint32_t, bool>;  // NodeId, bulk
  struct Silence {
    Time since{};
    Error error;
  };
  [[nodiscard]] Result<const Link*> connect(const proto::NodeInfo& node, bool bulk);
  [[nodiscard]] Status check_not_silent(std::uint32_t node_id);
  [[nodiscard]] tl::unexpected<Error> cannot_reach(const proto::NodeInfo& node, const Error& error);
  [[nodiscard]] Status start_hello(const proto::NodeInfo& node, bool bulk, bool second, net::Route route);
  [[nodiscard]] Status finish_hello(const HelloKey& key, const std::string& name, net::PeerId peer,
                                    Result<net::Packet> reply);
  bool may_move(const proto::NodeInfo& node) const;

  net::Messenger& messenger_;
  net::Calls& calls_;
  const Options options_;
  FindAgain find_again_;
  std::function<bool()> renew_credential_;
  std::string credential_;
  net::CallId next_id_ = 0;  // 0: Calls gives one
  std::string cluster_;
  std::unordered_map<std::uint32_t, Link> links_;       // by NodeId
  std::unordered_map<std::uint32_t, Link> bulk_links_;  // the same, only where links_ has small packets
  std::map<HelloKey, Hello> hellos_;                    // under way, or ended and not looked at yet
  std::uint64_t generation_ = 0;
  std::unordered_map<std::uint32_t, Outstanding> outstanding_;  // by NodeId
  std::unordered_map<std::uint32_t, proto::Endpoints> moved_;   // by NodeId: where it was said last to be
  std::unordered_map<std::uint32_t, Time> away_;                // by NodeId: when it could not be reached
  std::uint64_t passed_over_ = 0;
  std::unordered_map<std::uint32_t, Silence> silent_;  // by NodeId: nobody answered its last Hello
  std::unordered_set<std::uint32_t> doubted_;          // did not answer: looked up before the next request
  std::vector<Requests*> requests_;
};

}  // namespace pif::access
