// The connections of one Client: to the PIF Server (with the session it started there) and to the LFSs it has met. Not
// installed for users of pif/client/client.h: for client/ itself and for libtool/.
// Thread-safety: none; one thread at a time, like the Client. Two at once, and a forked child, get kInvalid
// (src/one_user.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/base/result.h"
#include "pif/client/client.h"
#include "pif/component/storage.h"
#include "pif/net/caller.h"
#include "pif/net/messenger.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"
#include "pif/wire/operations.h"

namespace pif::client {

class OneUser;
class Pool;
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

// What is under way to one LFS, over all operations of a session.
struct Outstanding {
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
};

// A change that is asked for at the server.
struct Change {
  std::string what;      // "the file was committed": what is not known without an answer
  std::string path;      // where to look then
  bool settles = false;  // asked again in another session, it still gets its own answer
  Duration patience{};   // for an answer, if that is more than the timeout
};
inline constexpr Duration kCommitPatience = std::chrono::seconds(30);

// What it means that a change got no answer: its outcome is not known. Other errors stay as they are.
Error outcome_unknown(Error error, const std::string& what, const std::string& path);

// What the server said of one open file, or of one being created. All that a worker needs to use it.
struct FileParts {
  FileId file;
  std::string path;  // as opened; for messages to people
  bool creating = false;
  Format format;
  proto::FileLayout file_layout;
  parity::Layout layout = *parity::Layout::make(1);
  std::vector<proto::NodeInfo> nodes;  // of the layout, in its order
  std::string capability;
  std::int64_t capability_until = 0;  // wall seconds; renew before
  std::uint32_t rights = 0;           // Rights asked for
  std::uint64_t epoch = 0;
  std::uint32_t owner = 0;  // uid
  FileLength file_length;   // hint: as of the last commit, flush or close
  std::map<std::string, std::string> attributes;

  // For the component of LFS `index` of the file.
  proto::ComponentShape shape(LfsIndex index) const;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Over sockets: finds the cluster's folder, makes a messenger, says Hello to the server.
  [[nodiscard]] static Result<std::shared_ptr<Session>> connect(ConnectOptions options);
  // In a given world; `server` may be empty (a worker, which only talks to LFSs).
  [[nodiscard]] static Result<std::shared_ptr<Session>> connect_in(ClientWorld world, const proto::Endpoints& server,
                                                                   ConnectOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  net::Caller& caller() { return *caller_; }
  const net::Stats& stats() const { return stats_; }  // of the requests sent from here
  net::Messenger& messenger() { return messenger_; }
  component::Storage& storage() { return storage_; }
  Clock& clock() { return messenger_.clock(); }
  Entropy& entropy() { return entropy_; }
  const ConnectOptions& options() const { return options_; }
  Duration timeout() const { return options_.timeout; }
  // Packed Credential of the session; goes into the envelope of every request (ask_* put it there).
  const std::string& credential() const { return credential_; }
  void set_credential(std::string packed) { credential_ = std::move(packed); }  // a worker gets its controller's
  const std::string& cluster() const { return cluster_; }
  std::uint32_t uid() const { return uid_; }  // as the server takes us for
  net::Route route() const { return route_; }

  // Gets what no call waits for: requests from peers (workers), wakes.
  void set_unasked(std::function<void(net::Delivery&)> handler) { unasked_ = std::move(handler); }

  // Asks the server. If the connection breaks (the server restarts) it connects again, resumes the session, and sends
  // the same request again, until the deadline: all requests to the server are safe to repeat. Zero: options().timeout.
  [[nodiscard]] Result<net::Packet> ask_server(net::Packet request, Duration timeout = Duration::zero());
  // The same, by type: a request of wire::kOperations, and what answers it.
  template <wire::Request R>
  [[nodiscard]] Result<wire::ReplyTo<R>> call(R request, Duration timeout = Duration::zero()) {
    return net::reply_in<R>(ask_server(net::packet_of(std::move(request)), timeout));
  }
  // The same for what changes something: an error says so when the outcome is not known, and where to look.
  [[nodiscard]] Result<net::Packet> change(net::Packet request, const Change& change);
  template <wire::Request R>
  [[nodiscard]] Result<wire::ReplyTo<R>> change(R request, const Change& change) {
    static_assert(wire::OperationOf<R>::kRow.again == wire::Again::kDeduplicated, "the server would do it twice");
    return net::reply_in<R>(this->change(net::packet_of(std::move(request)), change));
  }
  // Several of them under way at once; answers in the order asked. As many `changes`.
  std::vector<Result<net::Packet>> change_all(std::vector<net::Packet> requests, const std::vector<Change>& changes);
  // Several requests under way at once; answers in the order asked.
  std::vector<Result<net::Packet>> ask_server_all(std::vector<net::Packet> requests,
                                                  Duration timeout = Duration::zero());

  // The LFS: connected, and Hello'd. Cached until the connection is lost. `bulk`: able to carry bulk messages; the same
  // connection unless that is a Unix socket.
  [[nodiscard]] Result<Link> link(const proto::NodeInfo& node, bool bulk = false);
  [[nodiscard]] Result<net::PeerId> node(const proto::NodeInfo& node);
  // Connects to all of them at once, so that wide files open fast. An LFS that cannot be reached is no error here.
  void prepare(const std::vector<proto::NodeInfo>& nodes);
  // One request, one reply. `request` has its capability already; the credential is filled in. Connects again, once,
  // when the connection turns out to be dead before anything was sent over it, or the LFS to be elsewhere by now
  // (found_elsewhere).
  [[nodiscard]] Result<net::Packet> ask_node(const proto::NodeInfo& node, net::Packet request,
                                             Duration timeout = Duration::zero());
  // The same, by type. `capability`: packed; empty: none is needed.
  template <wire::Request R>
  [[nodiscard]] Result<wire::ReplyTo<R>> call(const proto::NodeInfo& node, R request, std::string capability = {},
                                              Duration timeout = Duration::zero()) {
    net::Packet packet = net::packet_of(std::move(request));
    packet.envelope.set_capability(std::move(capability));
    return net::reply_in<R>(ask_node(node, std::move(packet), timeout));
  }
  // Starts a request; wait for it with caller().wait(). `bulk`: see link(); the reply may be large, or the order among
  // bulk requests matters. Large bodies go that way in any case.
  [[nodiscard]] Result<net::CallId> start_node(const proto::NodeInfo& node, net::Packet request,
                                               Duration timeout = Duration::zero(), bool bulk = false);
  // How often it has presented itself to the server: if more often than before, the server may have forgotten what was
  // open.
  std::uint64_t hellos() const { return hellos_; }
  // For who lets time pass without asking the server: connects again if the connection was lost, and, where silence
  // ends a session (ZeroMQ), breaks it. Most calls do nothing.
  void keep_alive() { keep_alive(clock().wall_seconds()); }
  // For who knows the time already; now: wall seconds.
  void keep_alive(std::int64_t now) {
    if (now >= alive_at_) say_alive();
  }
  // Sends it over the connection that is there, if one is; nobody waits for the answer.
  void tell_node(const proto::NodeInfo& node, net::Packet request);
  // For a request over `peer` that was not answered: whether the LFS has another address by now, as one has that was
  // started again and listens on tcp. The server is asked, if there is time left; the next request goes there.
  bool found_elsewhere(const proto::NodeInfo& node, net::PeerId peer, Duration left);
  // Of the connection that there is; 0: none.
  net::PeerId peer_of(std::uint32_t node_id) const;
  // Forgets the connection (it is broken, or the node does not answer); the next request makes a new one.
  void drop_node(std::uint32_t node_id);
  // What counts against its credit: Link::window_bytes and window_requests.
  Outstanding& outstanding(std::uint32_t node_id) { return outstanding_[node_id]; }
  // All bulk under way. Who waits for credit takes in what came for others, so that none of them keeps it.
  void add(Requests& requests) { requests_.push_back(&requests); }
  void remove(Requests& requests);
  bool collect_others(const Requests& waiting);
  OneUser& user() { return *user_; }
  // Threads for transfers through descriptors; made at first use.
  Pool& pool();

 private:
  struct Owned;  // a real world
  struct Hello;  // a connection being made
  struct Asked;  // how a request to the server went
  Session(ClientWorld world, ConnectOptions options, net::Route route);
  [[nodiscard]] Status hello_server(Time deadline);
  [[nodiscard]] Status hello_server_by(net::Route route, Time deadline);
  // sent_in: the session in which it was sent before, without an answer; 0: it was not.
  Asked ask(net::Packet request, Time deadline, std::uint64_t sent_in = 0);
  [[nodiscard]] Result<net::Packet> change_again(net::Packet request, const Change& change, std::uint64_t sent_in);
  using AskAgain = std::function<Result<net::Packet>(std::size_t index, net::Packet request, std::uint64_t sent_in)>;
  std::vector<Result<net::Packet>> ask_all(std::vector<net::Packet> requests, Time deadline, const AskAgain& again);
  bool has_server() const { return !server_.unix_path().empty() || !server_.ipc().empty() || !server_.tcp().empty(); }
  const proto::Endpoints& endpoints_of(const proto::NodeInfo& node) const;
  bool may_move(const proto::NodeInfo& node) const;
  bool look_up(const proto::NodeInfo& node, Duration patience);
  [[nodiscard]] Result<Link> connect_node(const proto::NodeInfo& node);
  [[nodiscard]] Result<Hello> start_hello(const proto::NodeInfo& node, net::Route route);
  [[nodiscard]] Result<Link> finish_hello(Hello hello);
  net::Packet hello_packet() const;
  void on_unasked(net::Delivery& delivery);
  void say_alive();
  void say_bye();
  void server_is_lost();
  Status wait_a_moment(Time deadline);
  Duration or_default(Duration timeout) const { return timeout > Duration::zero() ? timeout : options_.timeout; }

  std::unique_ptr<Owned> owned_;  // first: outlives the rest
  std::unique_ptr<OneUser> user_;
  net::Messenger& messenger_;
  component::Storage& storage_;
  Entropy& entropy_;
  ConnectOptions options_;
  net::Route route_;
  std::function<void(net::Delivery&)> unasked_;
  net::Stats stats_;  // before caller_, which counts in it
  std::unique_ptr<net::Caller> caller_;
  proto::Endpoints server_;
  net::PeerId server_peer_ = 0;
  std::int64_t alive_at_ = std::numeric_limits<std::int64_t>::max();  // until there was a server
  std::string credential_;
  std::uint64_t number_ = 0;  // of the session at the server
  std::string cluster_;
  std::uint32_t uid_ = 0;
  std::unordered_map<std::uint32_t, Link> links_;       // by NodeId
  std::unordered_map<std::uint32_t, Link> bulk_links_;  // the same, only where links_ has small packets
  std::uint64_t link_generation_ = 0;
  std::uint64_t hellos_ = 0;
  std::unordered_map<std::uint32_t, Outstanding> outstanding_;  // by NodeId
  std::unordered_map<std::uint32_t, proto::Endpoints> moved_;   // by NodeId: where the server said last that it is
  std::unordered_set<std::uint32_t> doubted_;  // did not answer: the server is asked before the next request
  std::vector<Requests*> requests_;
  std::unique_ptr<Pool> pool_;
};

// ---- files, for libtool -------------------------------------------------------------------------------------------

// What an open File is made of.
const FileParts& parts_of(File& file);
// The file's components are all sealed already (by workers): makes it visible and durable with this length.
[[nodiscard]] Status commit_sealed(File& file, const FileLength& file_length);
// A fresh capability in parts_of(file) if the present one has less than a minute left.
[[nodiscard]] Status renew_if_needed(File& file);
// A File on somebody else's parts (a worker on its controller's): no server needed, except to renew; never commits or
// aborts it.
[[nodiscard]] Result<File> adopt_file(std::shared_ptr<Session> session, FileParts parts);
// The same for a Client's session, which the Client keeps alive.
std::shared_ptr<Session> session_of(Client& client);

}  // namespace pif::client
