#include "pif/client/session.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/limits.h"
#include "pif/cluster/cluster.h"
#include "pif/component/real_storage.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"
#include "pool.h"

namespace pif::client {

namespace {

constexpr Duration kReconnectPause = std::chrono::milliseconds(50);
constexpr std::int64_t kAliveSeconds = 20;      // the server ends a session that was silent for 60 s over ZeroMQ
constexpr std::int64_t kReconnectSeconds = 1;
constexpr Duration kAliveHello = std::chrono::milliseconds(300);  // others are waited for meanwhile
constexpr std::size_t kServerRequestsAtOnce = 256;  // the server commits those that wait together in one transaction

Result<net::Route> route_named(const std::string& name) {
  if (name.empty() || name == "auto") return net::Route::kAuto;
  if (name == "unix") return net::Route::kUnix;
  if (name == "ipc") return net::Route::kIpc;
  if (name == "tcp") return net::Route::kTcp;
  return fail(Code::kInvalid, fmt::format("unknown route \"{}\": auto, unix, ipc or tcp", name));
}

std::string program_name(const ConnectOptions& options) {
  const std::string name = options.program.empty() ? program_invocation_short_name : options.program;
  return fmt::format("{}[{}]", name, ::getpid());
}

}  // namespace

struct Session::Owned {
  std::unique_ptr<net::Messenger> messenger;
  std::unique_ptr<component::Storage> storage;
  net::SystemEntropy entropy;
};

struct Session::Hello {
  net::PeerId peer = 0;
  net::CallId call = 0;
  std::uint32_t node = 0;
  std::string name;
  bool bulk = false;
};

Session::Session(ClientWorld world, ConnectOptions options, net::Route route)
    : messenger_(world.messenger),
      storage_(world.storage),
      entropy_(world.entropy),
      options_(std::move(options)),
      route_(route),
      caller_(std::make_unique<net::Caller>(messenger_, 1, [this](net::Delivery& delivery) { on_unasked(delivery); })) {
  caller_->measure(&stats_);
}

Session::~Session() = default;

Result<std::shared_ptr<Session>> Session::connect(ConnectOptions options) {
  PIF_TRY_VALUE(const net::Route route, route_named(options.route));
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(options.where));
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  auto owned = std::make_unique<Owned>();
  net::MessengerOptions transport;
  if (cluster.tcp == cluster::TcpMode::kCurve && (route == net::Route::kTcp || route == net::Route::kAuto)) {
    auto keys = cluster::load_curve(cluster, "client");
    if (!keys && route == net::Route::kTcp) return fail(std::move(keys.error()));
    if (keys) transport.client_keys = std::move(*keys);  // without them other routes still work
    transport.io_threads = 2;  // they encrypt: one core alone is the limit of a transfer
  }
  PIF_TRY_VALUE(owned->messenger, net::make_real_messenger(std::move(transport)));
  owned->storage = component::make_real_storage();
  options.program = program_name(options);
  const Duration timeout = options.timeout;
  std::shared_ptr<Session> session(
      new Session({*owned->messenger, *owned->storage, owned->entropy}, std::move(options), route));
  session->owned_ = std::move(owned);
  session->server_ = cluster.server_endpoints();
  session->cluster_ = cluster.id;
  PIF_TRY(session->hello_server(session->clock().now() + timeout));
  return session;
}

Result<std::shared_ptr<Session>> Session::connect_in(ClientWorld world, const proto::Endpoints& server,
                                                     ConnectOptions options) {
  PIF_TRY_VALUE(const net::Route route, route_named(options.route));
  const Duration timeout = options.timeout;
  if (options.program.empty()) options.program = program_name(options);
  std::shared_ptr<Session> session(new Session(world, std::move(options), route));
  session->server_ = server;
  const bool has_server = !server.unix_path().empty() || !server.ipc().empty() || !server.tcp().empty();
  if (has_server) PIF_TRY(session->hello_server(session->clock().now() + timeout));
  return session;
}

Pool& Session::pool() {
  if (!pool_) pool_ = std::make_unique<Pool>(options_.threads);
  return *pool_;
}

net::Packet Session::hello_packet() const {
  net::Packet packet;
  packet.envelope.mutable_hello()->set_program(options_.program);
  packet.envelope.set_credential(credential_);
  return packet;
}

// ZeroMQ says nothing about who is at the other end (CURVE apart): a session that is forced onto it starts on the Unix
// socket, where the kernel does, and shows the credential it got there. The connection stays: it is the session's life.
Status Session::hello_server(Time deadline) {
  const bool introduced_elsewhere = route_ != net::Route::kAuto && route_ != net::Route::kUnix && !server_.unix_path().empty();
  if (introduced_elsewhere) PIF_TRY(hello_server_by(net::Route::kUnix, deadline));
  return hello_server_by(route_, deadline);
}

Status Session::hello_server_by(net::Route route, Time deadline) {
  PIF_TRY_VALUE(const net::PeerId peer, messenger_.connect(server_, route));
  auto reply = caller_->call(peer, hello_packet(), deadline - clock().now(), "server");
  if (!reply && reply.error().code == Code::kBadCapability && !credential_.empty()) {
    // The session we wanted to resume is over: start a new one.
    credential_.clear();
    reply = caller_->call(peer, hello_packet(), deadline - clock().now(), "server");
  }
  if (!reply) {
    messenger_.disconnect(peer);
    return fail(std::move(reply.error()));
  }
  const proto::HelloReply& hello = reply->envelope.hello_reply();
  if (!cluster_.empty() && hello.cluster() != cluster_) {
    messenger_.disconnect(peer);
    return fail(Code::kInvalid, fmt::format("the server there belongs to file system {}, not to {}: look at pif.toml",
                                            hello.cluster(), cluster_));
  }
  cluster_ = hello.cluster();
  credential_ = hello.credential();
  uid_ = hello.uid();
  server_peer_ = peer;
  alive_at_ = clock().wall_seconds() + kAliveSeconds;
  return {};
}

void Session::server_is_lost() {
  server_peer_ = 0;
  alive_at_ = 0;
}

void Session::say_alive() {
  static_cast<void>(caller_->pump(Time{}).has_value());  // the end of the connection may be there, unread
  if (server_peer_ == 0) {
    alive_at_ = clock().wall_seconds() + kReconnectSeconds;
    static_cast<void>(hello_server(clock().now() + kAliveHello).has_value());
    return;
  }
  alive_at_ = clock().wall_seconds() + kAliveSeconds;
  net::Packet packet;
  packet.envelope.mutable_renew();
  packet.envelope.set_credential(credential_);
  caller_->forget(caller_->start(server_peer_, std::move(packet), options_.timeout, "server"));
}

// Lets time pass (and packets arrive) before another attempt.
Status Session::wait_a_moment(Time deadline) {
  const Time until = std::min(deadline, clock().now() + kReconnectPause);
  while (clock().now() < until) PIF_TRY(caller_->pump(until));
  return {};
}

// A fault of the connection, as opposed to an answer of the peer.
bool Session::connection_lost(const Error& error) const {
  return error.code == Code::kUnavailable || error.code == Code::kTimeout;
}

Result<net::Packet> Session::ask_server(net::Packet request, Duration timeout) {
  const Time deadline = clock().now() + or_default(timeout);
  proto::Envelope envelope = std::move(request.envelope);
  while (true) {
    Error error{Code::kUnavailable, "no connection to the PIF Server: is it running? (pif up)", {}};
    if (server_peer_ == 0) {
      if (auto hello = hello_server(deadline); !hello) error = std::move(hello.error());
    }
    if (server_peer_ != 0) {
      net::Packet packet;
      packet.envelope = envelope;
      packet.envelope.set_credential(credential_);
      const net::PeerId peer = server_peer_;
      const net::CallId id = caller_->start(peer, std::move(packet), deadline - clock().now(), "server");
      envelope.set_id(id);  // the same when it is sent again: the server knows it by that
      auto reply = caller_->wait(id);
      if (reply) return reply;
      error = std::move(reply.error());
      const bool answered = server_peer_ == peer && !error.node.empty();
      if (!connection_lost(error) || answered) return fail(std::move(error));
      messenger_.disconnect(peer);
      server_is_lost();
    } else if (!connection_lost(error)) {
      return fail(std::move(error));
    }
    if (clock().now() >= deadline) return fail(std::move(error));
    PIF_TRY(wait_a_moment(deadline));
  }
}

std::vector<Result<net::Packet>> Session::ask_server_all(std::vector<net::Packet> requests, Duration timeout) {
  std::vector<Result<net::Packet>> replies;
  replies.reserve(requests.size());
  const Time deadline = clock().now() + or_default(timeout);
  for (std::size_t begin = 0; begin < requests.size(); begin += kServerRequestsAtOnce) {
    const std::size_t end = std::min(requests.size(), begin + kServerRequestsAtOnce);
    std::vector<net::CallId> calls;
    std::vector<proto::Envelope> copies;
    for (std::size_t i = begin; i < end && server_peer_ != 0; ++i) {
      requests[i].envelope.set_credential(credential_);
      copies.push_back(requests[i].envelope);
      calls.push_back(caller_->start(server_peer_, std::move(requests[i]), deadline - clock().now(), "server"));
      copies.back().set_id(calls.back());
    }
    for (std::size_t i = begin; i < end; ++i) {
      const bool started = i - begin < calls.size();
      auto reply = started ? caller_->wait(calls[i - begin]) : Result<net::Packet>(fail(Code::kUnavailable, ""));
      if (!reply && connection_lost(reply.error()) && reply.error().node.empty() && clock().now() < deadline) {
        net::Packet again;
        again.envelope = started ? std::move(copies[i - begin]) : std::move(requests[i].envelope);
        reply = ask_server(std::move(again), deadline - clock().now());
      }
      replies.push_back(std::move(reply));
    }
  }
  return replies;
}

Result<Session::Hello> Session::start_hello(const proto::NodeInfo& node, net::Route route) {
  auto peer = messenger_.connect(node.endpoints(), route);
  if (!peer) return fail(peer.error().code, fmt::format("cannot reach LFS {}: {}", node.name(), peer.error().text), node.name());
  const net::CallId call = caller_->start(*peer, hello_packet(), timeout(), node.name());
  return Hello{*peer, call, node.id(), node.name(), false};
}

Result<Link> Session::finish_hello(Hello hello) {
  auto reply = caller_->wait(hello.call);
  if (!reply) {
    messenger_.disconnect(hello.peer);
    Error error = std::move(reply.error());
    if (error.node.empty()) error.node = hello.name;
    return fail(std::move(error));
  }
  const proto::HelloReply& answer = reply->envelope.hello_reply();
  if (!cluster_.empty() && answer.cluster() != cluster_) {
    messenger_.disconnect(hello.peer);
    return fail(Code::kInvalid, fmt::format("the LFS at this address belongs to file system {}, not to {}",
                                            answer.cluster(), cluster_), hello.name);
  }
  const auto via = messenger_.identity(hello.peer).via;
  Link link;
  link.peer = hello.peer;
  link.node = hello.node;
  link.name = hello.name;
  link.window_bytes = std::max<std::uint64_t>(answer.window_bytes(), kBulkBytes);
  link.passes_descriptors = via == net::Identity::Via::kUnix || via == net::Identity::Via::kSimulated;
  link.small_packets = link.passes_descriptors;
  link.generation = ++link_generation_;
  (hello.bulk ? bulk_links_ : links_)[hello.node] = link;
  outstanding_[hello.node] = 0;
  return link;
}

Result<Link> Session::link(const proto::NodeInfo& node, bool bulk) {
  if (bulk) {
    if (const auto it = bulk_links_.find(node.id()); it != bulk_links_.end()) return it->second;
  }
  auto it = links_.find(node.id());
  if (it == links_.end()) {
    PIF_TRY_VALUE(Hello hello, start_hello(node, route_));
    PIF_TRY(finish_hello(std::move(hello)));
    it = links_.find(node.id());
    if (it == links_.end()) return fail(Code::kUnavailable, "the connection was lost at once", node.name());
  }
  if (!bulk || !it->second.small_packets || node.endpoints().ipc().empty()) return it->second;
  PIF_TRY_VALUE(Hello hello, start_hello(node, net::Route::kIpc));
  hello.bulk = true;
  return finish_hello(std::move(hello));
}

Result<net::PeerId> Session::node(const proto::NodeInfo& info) {
  PIF_TRY_VALUE(const Link found, link(info));
  return found.peer;
}

void Session::prepare(const std::vector<proto::NodeInfo>& nodes) {
  std::vector<Hello> hellos;
  for (const proto::NodeInfo& node : nodes) {
    if (links_.contains(node.id())) continue;
    if (auto hello = start_hello(node, route_)) hellos.push_back(std::move(*hello));
  }
  for (Hello& hello : hellos) static_cast<void>(finish_hello(std::move(hello)).has_value());
}

Result<net::CallId> Session::start_node(const proto::NodeInfo& info, net::Packet request, Duration timeout, bool bulk) {
  PIF_TRY_VALUE(const Link found, link(info, bulk || request.body.size() > kSmallBodyBytes));
  request.envelope.set_credential(credential_);
  return caller_->start(found.peer, std::move(request), or_default(timeout), info.name());
}

Result<net::Packet> Session::ask_node(const proto::NodeInfo& info, net::Packet request, Duration timeout) {
  const bool repeatable = request.body.empty() && request.handles.empty();
  const proto::Envelope envelope = repeatable ? request.envelope : proto::Envelope();
  const bool was_linked = links_.contains(info.id());
  PIF_TRY_VALUE(const net::CallId id, start_node(info, std::move(request), timeout));
  auto reply = caller_->wait(id);
  if (!reply && reply.error().code == Code::kUnavailable && reply.error().node.empty()) {
    drop_node(info.id());
    if (was_linked && repeatable) {
      net::Packet again;
      again.envelope = envelope;
      PIF_TRY_VALUE(const net::CallId second, start_node(info, std::move(again), timeout));
      reply = caller_->wait(second);
    }
  }
  if (!reply && reply.error().node.empty()) reply.error().node = info.name();
  return reply;
}

void Session::tell_node(const proto::NodeInfo& info, net::Packet request) {
  const auto found = links_.find(info.id());
  if (found == links_.end()) return;
  request.envelope.set_credential(credential_);
  caller_->forget(caller_->start(found->second.peer, std::move(request), options_.timeout, info.name()));
}

void Session::drop_node(std::uint32_t node_id) {
  for (auto* links : {&links_, &bulk_links_}) {
    const auto it = links->find(node_id);
    if (it == links->end()) continue;
    messenger_.disconnect(it->second.peer);
    links->erase(it);
  }
}

void Session::on_unasked(net::Delivery& delivery) {
  if (delivery.kind == net::Delivery::Kind::kClosed) {
    if (delivery.peer == server_peer_) server_is_lost();
    for (auto* links : {&links_, &bulk_links_}) {
      std::erase_if(*links, [&](const auto& entry) { return entry.second.peer == delivery.peer; });
    }
  }
  if (unasked_) unasked_(delivery);
}

}  // namespace pif::client
