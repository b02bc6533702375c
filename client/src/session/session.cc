#include "pif/client/session.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/cluster/cluster.h"
#include "pif/component/real_storage.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"
#include "session/message_io.h"
#include "session/one_user.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr Duration kReconnectPause = std::chrono::milliseconds(50);
constexpr std::int64_t kAliveSeconds = kAliveEvery / std::chrono::seconds(1);
constexpr std::int64_t kReconnectSeconds = 1;
constexpr Duration kAliveHello = std::chrono::milliseconds(300);  // others are waited for meanwhile
constexpr Duration kLookUpPatience = std::chrono::seconds(5);
constexpr std::uint64_t kWindowRequestsDefault = 64;  // of an LFS that says nothing: far from what it would not take
constexpr std::uint64_t kWindowRequestsMax = 1024;    // whatever an LFS says: a quarter of what a transport queues
constexpr std::size_t kServerRequestsAtOnce = 256;    // the server commits those that wait together in one transaction

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

// A fault of the connection, as opposed to an answer of the peer.
bool is_lost(Code code) { return code == Code::kUnavailable || code == Code::kTimeout; }

}  // namespace

Error outcome_unknown(Error error, const std::string& what, const std::string& path) {
  if (!is_lost(error.code)) return error;
  error.text += fmt::format(": whether {} is not known: look with pif stat {}", what, path);
  return error;
}

struct Session::Owned {
  std::unique_ptr<net::Messenger> messenger;
  std::unique_ptr<component::Storage> storage;
  net::SystemEntropy entropy;
  cluster::Cluster cluster;
};

struct Session::Asked {
  Result<net::Packet> reply = fail(Code::kUnavailable, "no connection to the PIF Server: is it running? (pif up)");
  bool may_be_done = false;   // it was sent at least once without an answer
  bool lost_session = false;  // and then again in another session, where it is not recognised
};

struct Session::Hello {
  net::PeerId peer = 0;
  net::CallId call = 0;
  std::uint32_t node = 0;
  std::string name;
  bool bulk = false;
};

Session::Session(ClientWorld world, ConnectOptions options, net::Route route)
    : user_(std::make_unique<OneUser>()),
      messenger_(world.messenger),
      storage_(world.storage),
      entropy_(world.entropy),
      options_(std::move(options)),
      route_(route),
      caller_(std::make_unique<net::Caller>(messenger_, 1, [this](net::Delivery& delivery) { on_unasked(delivery); })) {
  caller_->measure(&stats_);
}

// A child leaves alone what it ranges with its parent (the kernel would take the parent's sockets out of the parent's
// epoll), and what it has only the memory of (threads): that goes with the process.
Session::~Session() {
  if (!user_->is_in_child()) {
    say_bye();
    return;
  }
  static_cast<void>(caller_.release());
  static_cast<void>(pool_.release());
  static_cast<void>(owned_.release());
}

// A Unix socket's end tells by itself; over ZeroMQ the server would wait for more.
void Session::say_bye() {
  if (server_peer_ == 0) return;
  const auto via = messenger_.identity(server_peer_).via;
  if (via == net::Identity::Via::kUnix || via == net::Identity::Via::kSimulated) return;
  net::Packet packet;
  packet.envelope.mutable_bye();
  packet.envelope.set_credential(credential_);
  (void)messenger_.send(server_peer_, std::move(packet));
}

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
    transport.io_threads = 2;                            // they encrypt: one core alone is the limit of a transfer
  }
  PIF_TRY_VALUE(owned->messenger, net::make_real_messenger(std::move(transport)));
  owned->storage = component::make_real_storage();
  options.program = program_name(options);
  const Duration timeout = options.timeout;
  std::shared_ptr<Session> session(
      new Session({*owned->messenger, *owned->storage, owned->entropy}, std::move(options), route));
  session->owned_ = std::move(owned);
  session->owned_->cluster = cluster;
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
  if (session->has_server()) PIF_TRY(session->hello_server(session->clock().now() + timeout));
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
  if (owned_) server_ = owned_->cluster.server_endpoints();  // read anew: at another port after a start, over tcp
  const bool introduced_elsewhere =
      route_ != net::Route::kAuto && route_ != net::Route::kUnix && !server_.unix_path().empty();
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
  number_ = hello.session();
  uid_ = hello.uid();
  server_peer_ = peer;
  ++hellos_;
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

Session::Asked Session::ask(net::Packet request, Time deadline, std::uint64_t sent_in) {
  Asked asked;
  asked.may_be_done = sent_in != 0;
  proto::Envelope envelope = std::move(request.envelope);
  do {
    if (server_peer_ == 0) {
      if (auto hello = hello_server(deadline); !hello) asked.reply = fail(std::move(hello.error()));
    }
    if (server_peer_ != 0) {
      net::Packet packet;
      packet.envelope = envelope;
      packet.envelope.set_credential(credential_);
      const net::PeerId peer = server_peer_;
      const net::CallId id = caller_->start(peer, std::move(packet), deadline - clock().now(), "server");
      envelope.set_id(id);  // the same when it is sent again: the server knows it by that
      asked.lost_session = asked.may_be_done && sent_in != number_;
      sent_in = number_;
      asked.reply = caller_->wait(id);
      const bool answered = asked.reply || (server_peer_ == peer && !asked.reply.error().node.empty());
      if (answered || !is_lost(asked.reply.error().code)) return asked;
      asked.may_be_done = true;
      messenger_.disconnect(peer);
      server_is_lost();
    } else if (!is_lost(asked.reply.error().code)) {
      return asked;
    }
    if (clock().now() >= deadline) return asked;
    if (auto waited = wait_a_moment(deadline); !waited) {
      asked.reply = fail(std::move(waited.error()));
      return asked;
    }
  } while (clock().now() < deadline);
  return asked;
}

Result<net::Packet> Session::ask_server(net::Packet request, Duration timeout) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  return ask(std::move(request), clock().now() + or_default(timeout)).reply;
}

Result<net::Packet> Session::change(net::Packet request, const Change& change) {
  return change_again(std::move(request), change, 0);
}

Result<net::Packet> Session::change_again(net::Packet request, const Change& change, std::uint64_t sent_in) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  Asked asked = ask(std::move(request), clock().now() + std::max(options_.timeout, change.patience), sent_in);
  if (asked.reply) return std::move(asked.reply);
  Error error = std::move(asked.reply.error());
  // Another session's answer (there is no such name) can be what the first request, which was not answered, has left.
  if (asked.lost_session && !change.settles && !is_lost(error.code))
    error = {Code::kTimeout, std::move(error.text), {}};
  return fail(asked.may_be_done ? outcome_unknown(std::move(error), change.what, change.path) : std::move(error));
}

std::vector<Result<net::Packet>> Session::ask_server_all(std::vector<net::Packet> requests, Duration timeout) {
  const Time deadline = clock().now() + or_default(timeout);
  return ask_all(std::move(requests), deadline, [&](std::size_t, net::Packet again, std::uint64_t) {
    return ask_server(std::move(again), deadline - clock().now());
  });
}

std::vector<Result<net::Packet>> Session::change_all(std::vector<net::Packet> requests,
                                                     const std::vector<Change>& changes) {
  return ask_all(std::move(requests), clock().now() + options_.timeout,
                 [&](std::size_t index, net::Packet again, std::uint64_t sent_in) {
                   return change_again(std::move(again), changes[index], sent_in);
                 });
}

std::vector<Result<net::Packet>> Session::ask_all(std::vector<net::Packet> requests, Time deadline,
                                                  const AskAgain& again) {
  std::vector<Result<net::Packet>> replies;
  replies.reserve(requests.size());
  const auto use = Use::begin(*user_);
  if (!use) {
    for (std::size_t i = 0; i < requests.size(); ++i) replies.emplace_back(fail(use.error()));
    return replies;
  }
  for (std::size_t begin = 0; begin < requests.size(); begin += kServerRequestsAtOnce) {
    const std::size_t end = std::min(requests.size(), begin + kServerRequestsAtOnce);
    const std::uint64_t sent_in = number_;
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
      if (!reply && is_lost(reply.error().code) && reply.error().node.empty() && clock().now() < deadline) {
        net::Packet second;
        second.envelope = started ? std::move(copies[i - begin]) : std::move(requests[i].envelope);
        reply = again(i, std::move(second), started ? sent_in : 0);
      }
      replies.push_back(std::move(reply));
    }
  }
  return replies;
}

Result<Session::Hello> Session::start_hello(const proto::NodeInfo& node, net::Route route) {
  auto peer = messenger_.connect(endpoints_of(node), route);
  if (!peer)
    return fail(peer.error().code, fmt::format("cannot reach LFS {}: {}", node.name(), peer.error().text), node.name());
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
    return fail(Code::kInvalid,
                fmt::format("the LFS at this address belongs to file system {}, not to {}", answer.cluster(), cluster_),
                hello.name);
  }
  const auto via = messenger_.identity(hello.peer).via;
  Link link;
  link.peer = hello.peer;
  link.node = hello.node;
  link.name = hello.name;
  link.window_bytes = std::max<std::uint64_t>(answer.window_bytes(), kBulkBytes);
  link.window_requests = answer.window_requests() == 0
                             ? kWindowRequestsDefault
                             : std::min<std::uint64_t>(answer.window_requests(), kWindowRequestsMax);
  link.passes_descriptors = via == net::Identity::Via::kUnix || via == net::Identity::Via::kSimulated;
  link.small_packets = link.passes_descriptors;
  link.generation = ++link_generation_;
  (hello.bulk ? bulk_links_ : links_)[hello.node] = link;
  return link;
}

// ---- LFSs that were started again: over tcp they are at another port then ----

const proto::Endpoints& Session::endpoints_of(const proto::NodeInfo& node) const {
  const auto moved = moved_.find(node.id());
  return moved == moved_.end() ? node.endpoints() : moved->second;
}

bool Session::may_move(const proto::NodeInfo& node) const {
  const bool by_tcp = route_ == net::Route::kTcp || (route_ == net::Route::kAuto && !endpoints_of(node).tcp().empty());
  return by_tcp && has_server();
}

// Asks the server where the LFSs are now. Whether this one is elsewhere than was known.
bool Session::look_up(const proto::NodeInfo& node, Duration patience) {
  const proto::Endpoints before = endpoints_of(node);
  net::Packet request;
  request.envelope.mutable_nodes();
  const Asked asked = ask(std::move(request), clock().now() + std::min(kLookUpPatience, patience));
  if (!asked.reply) return false;
  for (const proto::NodeInfo& now : asked.reply->envelope.nodes_reply().nodes()) moved_[now.id()] = now.endpoints();
  const proto::Endpoints& after = endpoints_of(node);
  return after.tcp() != before.tcp() || after.curve_key() != before.curve_key();
}

bool Session::found_elsewhere(const proto::NodeInfo& node, net::PeerId peer, Duration left) {
  const auto known = links_.find(node.id());
  if (!may_move(node) || (known != links_.end() && known->second.passes_descriptors)) return false;
  if (known == links_.end() || known->second.peer != peer) return left > Duration::zero();  // others have found out
  if (left <= Duration::zero() || !look_up(node, left)) {
    doubted_.insert(node.id());
    return false;
  }
  drop_node(node.id());
  return true;
}

Result<Link> Session::connect_node(const proto::NodeInfo& node) {
  const auto attempt = [&]() -> Result<Link> {
    PIF_TRY_VALUE(Hello hello, start_hello(node, route_));
    return finish_hello(std::move(hello));
  };
  auto made = attempt();
  if (made || !may_move(node) || !is_lost(made.error().code)) return made;
  if (look_up(node, timeout())) made = attempt();
  if (!made) doubted_.insert(node.id());
  return made;
}

net::PeerId Session::peer_of(std::uint32_t node_id) const {
  const auto found = links_.find(node_id);
  return found == links_.end() ? 0 : found->second.peer;
}

// ---- links ----

Result<Link> Session::link(const proto::NodeInfo& node, bool bulk) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  if (!doubted_.empty() && doubted_.erase(node.id()) > 0 && look_up(node, timeout())) drop_node(node.id());
  if (bulk) {
    if (const auto it = bulk_links_.find(node.id()); it != bulk_links_.end()) return it->second;
  }
  auto it = links_.find(node.id());
  if (it == links_.end()) {
    PIF_TRY(connect_node(node));
    it = links_.find(node.id());
    if (it == links_.end()) return fail(Code::kUnavailable, "the connection was lost at once", node.name());
  }
  if (!bulk || !it->second.small_packets || endpoints_of(node).ipc().empty()) return it->second;
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
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  PIF_TRY_VALUE(const Link found, link(info, bulk || request.body.size() > kSmallBodyBytes));
  request.envelope.set_credential(credential_);
  return caller_->start(found.peer, std::move(request), or_default(timeout), info.name());
}

Result<net::Packet> Session::ask_node(const proto::NodeInfo& info, net::Packet request, Duration timeout) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  const Time deadline = clock().now() + or_default(timeout);
  const bool repeatable = request.body.empty() && request.handles.empty();
  const proto::Envelope envelope = repeatable ? request.envelope : proto::Envelope();
  const bool was_linked = links_.contains(info.id());
  PIF_TRY_VALUE(const net::CallId id, start_node(info, std::move(request), timeout));
  const net::PeerId peer = peer_of(info.id());
  auto reply = caller_->wait(id);
  if (!reply && is_lost(reply.error().code) && reply.error().node.empty()) {
    const bool is_closed = reply.error().code == Code::kUnavailable;
    if (is_closed) drop_node(info.id());
    const bool again = is_closed ? was_linked : found_elsewhere(info, peer, deadline - clock().now());
    if (const Duration left = deadline - clock().now(); again && repeatable && left > Duration::zero()) {
      net::Packet second;
      second.envelope = envelope;
      PIF_TRY_VALUE(const net::CallId second_id, start_node(info, std::move(second), left));
      reply = caller_->wait(second_id);
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

void Session::remove(Requests& requests) {
  const auto found = std::find(requests_.rbegin(), requests_.rend(), &requests);  // mostly the last one
  if (found != requests_.rend()) requests_.erase(std::next(found).base());
}

bool Session::collect_others(const Requests& waiting) {
  bool any = false;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != &waiting) any = requests_[i]->collect() || any;
  }
  return any;
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
