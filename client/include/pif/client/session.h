// The connections of one Client: a ServerSession, and access::LfsLinks; and the ways to wait for them. Not
// installed for users of pif/client/client.h: for client/ itself and for libtool/.
// Thread-safety: none; one thread at a time, like the Client. Two at once, and a forked child, get kInvalid
// (src/session/one_user.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pif/access/grant.h"
#include "pif/access/lfs_links.h"
#include "pif/base/clock.h"
#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/base/result.h"
#include "pif/client/client.h"
#include "pif/client/server_session.h"
#include "pif/component/storage.h"
#include "pif/net/caller.h"
#include "pif/net/messenger.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"
#include "pif/wire/operations.h"

namespace pif::client {

class MemberWatch;
class OneUser;
class Pool;

using access::FileParts;
using access::Link;

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Over sockets: finds the cluster's folder, makes a messenger, says Hello to the server. Errors: Client::connect().
  [[nodiscard]] static Result<std::shared_ptr<Session>> connect(ConnectOptions options);
  // In a given world, which outlives it; `server` may be empty (a worker, which only talks to LFSs).
  [[nodiscard]] static Result<std::shared_ptr<Session>> connect_in(ClientWorld world, const proto::Endpoints& server,
                                                                   ConnectOptions options);
  ~Session();  // says Bye; in a forked child it leaves everything to the parent
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The parts that it is made of, and how it was connected: valid as long as the session.
  net::Caller& caller() { return *caller_; }
  access::LfsLinks& links() { return *links_; }
  const net::Stats& stats() const { return stats_; }  // of the requests sent from here
  net::Messenger& messenger() { return messenger_; }
  component::Storage& storage() { return storage_; }
  Clock& clock() { return messenger_.clock(); }
  Entropy& entropy() { return entropy_; }
  const ConnectOptions& options() const { return options_; }
  Duration timeout() const { return options_.timeout; }
  // Packed Credential of the session; goes into the envelope of every request (ask_* put it there).
  const std::string& credential() const { return links_->credential(); }
  // Id of the file system; not for a worker.
  const std::string& cluster() const { return server_->cluster(); }
  std::uint32_t uid() const { return server_ ? server_->uid() : 0; }  // as the server takes us for
  net::Route route() const { return route_; }                         // as ConnectOptions::route asks for

  // The server: see ServerSession. Only a worker has none (kUnavailable); it never asks for many at once.
  [[nodiscard]] Result<net::Packet> ask_server(net::Packet request, Duration timeout = Duration::zero());
  // ServerSession::tell(); false for a worker.
  bool tell_server(net::Packet request) { return server_ && server_->tell(std::move(request)); }
  // The same, by type: a request of wire::kOperations, and what answers it.
  template <wire::Request R>
  [[nodiscard]] Result<wire::ReplyTo<R>> call(R request, Duration timeout = Duration::zero()) {
    return net::reply_in<R>(ask_server(net::packet_of(std::move(request)), timeout));
  }
  // ServerSession::change(), by message and by type; and both ways to have many under way.
  [[nodiscard]] Result<net::Packet> change(net::Packet request, const Change& change);
  template <wire::Request R>
  [[nodiscard]] Result<wire::ReplyTo<R>> change(R request, const Change& change) {
    static_assert(wire::OperationOf<R>::kRow.again == wire::Again::kDeduplicated, "the server would do it twice");
    return net::reply_in<R>(this->change(net::packet_of(std::move(request)), change));
  }
  std::vector<Result<net::Packet>> change_all(std::vector<net::Packet> requests, const std::vector<Change>& changes) {
    return server_->change_all(std::move(requests), changes);
  }
  std::vector<Result<net::Packet>> ask_server_all(std::vector<net::Packet> requests,
                                                  Duration timeout = Duration::zero()) {
    return server_->ask_all(std::move(requests), timeout);
  }
  void ask_server_all(std::vector<net::Packet> requests, const ServerSession::TakeReply& take) {
    server_->ask_all(std::move(requests), take);
  }
  // ServerSession::keep_alive(); now: wall seconds. Nothing happens for a worker.
  void keep_alive() { keep_alive(clock().wall_seconds()); }
  void keep_alive(std::int64_t now) {
    if (server_) server_->keep_alive(now);
  }

  // Asks from time to time who takes part. Null for a worker.
  MemberWatch* members() { return members_.get(); }

  // The LFS: connected, and Hello'd; waits until that has ended. Errors: LfsLinks::link(). node(): only its peer.
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
  // A new credential, which every request bears from then on: whether the server gave one.
  bool renew_credential(Duration patience);
  // See ServerSession; 0 for a worker.
  std::uint64_t hellos() const { return server_ ? server_->hellos() : 0; }
  // Sends it over the connection that is there, if one is; nobody waits for the answer.
  void tell_node(const proto::NodeInfo& node, net::Packet request);
  // Forgets the connection (it is broken, or the node does not answer); the next request makes a new one.
  void drop_node(std::uint32_t node_id) { links_->drop(node_id, links_->peer_of(node_id)); }
  // Steps, and waits for news if nothing came. The second: until none is left. Errors: those of Requests::step().
  [[nodiscard]] Status pump(access::Requests& requests);
  [[nodiscard]] Status run(access::Requests& requests);

  // The thread inside: whatever sends or waits enters it first (src/session/one_user.h).
  OneUser& user() { return *user_; }
  // Threads for transfers through descriptors; made at first use.
  Pool& pool();

 private:
  struct Owned;  // a real world
  Session(ClientWorld world, ConnectOptions options, net::Route route);
  [[nodiscard]] Status begin(ServerSession::Where where, std::string cluster);
  [[nodiscard]] Status check_server() const;
  void on_unasked(net::Delivery& delivery);
  bool look_up(const proto::NodeInfo& node, Duration patience);
  bool may_ask_again(const proto::NodeInfo& info, const Error& error, bool was_linked, net::PeerId peer, Duration left);
  Duration or_default(Duration timeout) const { return timeout > Duration::zero() ? timeout : options_.timeout; }

  std::unique_ptr<Owned> owned_;  // first: outlives the rest
  std::unique_ptr<OneUser> user_;
  net::Messenger& messenger_;
  component::Storage& storage_;
  Entropy& entropy_;
  ConnectOptions options_;
  net::Route route_;
  net::Stats stats_;  // before caller_, which counts in it
  std::unique_ptr<net::Caller> caller_;
  std::unique_ptr<access::LfsLinks> links_;
  std::unique_ptr<ServerSession> server_;
  std::unique_ptr<MemberWatch> members_;
  std::unique_ptr<Pool> pool_;
};

// ---- files, for libtool -------------------------------------------------------------------------------------------

// The parts of an open File; valid as long as the File, and so is its Grant.
const FileParts& parts_of(File& file);
// The file's components are all sealed already (by workers): makes it visible and durable with this length. Errors:
// those of File::commit().
[[nodiscard]] Status commit_sealed(File& file, const FileLength& file_length);
// Ends the writing of a file being created: its LFSs seal what they have. Then it can be read, committed, or given up.
// Errors: those of File::commit().
[[nodiscard]] Status seal(File& file);
// To read a file being created, whose components are all sealed and whose length is known, before its commit or without
// one. It is there as long as `file` is not given up.
[[nodiscard]] Result<File> read_sealed(File& file, const FileLength& file_length);
// Its right, as requests need it.
access::Grant& grant_of(File& file);
// A fresh capability in parts_of(file) if the present one has less than a minute left. kStaleFile: the file is gone, or
// a hold of it was lost.
[[nodiscard]] Status renew_if_needed(File& file);
// A File on somebody else's parts (a worker on its controller's): no server needed, except to renew; never commits or
// aborts it.
[[nodiscard]] Result<File> adopt_file(std::shared_ptr<Session> session, FileParts parts);
// The same for a Client's session, which the Client keeps alive.
std::shared_ptr<Session> session_of(Client& client);

}  // namespace pif::client
