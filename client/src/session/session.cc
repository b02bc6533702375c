#include "pif/client/session.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "pif/access/requests.h"
#include "pif/base/assert.h"
#include "pif/cluster/cluster.h"
#include "pif/component/real_storage.h"
#include "pif/machine/limits.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"
#include "session/member_watch.h"
#include "session/one_user.h"
#include "session/patient_storage.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr Duration kLookUpPatience = std::chrono::seconds(5);
constexpr unsigned kThreadsMin = 2;  // a started transfer goes on beside its owner even on one core

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
  cluster::Cluster cluster;
};

Session::Session(ClientWorld world, ConnectOptions options, net::Route route)
    : user_(std::make_unique<OneUser>()),
      messenger_(world.messenger),
      storage_(world.storage),
      entropy_(world.entropy),
      options_(std::move(options)),
      route_(route),
      caller_(std::make_unique<net::Caller>(messenger_, 1, [this](net::Delivery& delivery) { on_unasked(delivery); })),
      links_(std::make_unique<access::LfsLinks>(
          messenger_, caller_->calls(), access::LfsLinks::Options{route_, options_.program, options_.timeout})) {
  caller_->measure(&stats_);
}

// A child leaves alone what it ranges with its parent (the kernel would take the parent's sockets out of the parent's
// epoll), and what it has only the memory of (threads): that goes with the process.
Session::~Session() {
  if (!user_->is_in_child()) {
    if (server_ && !user_->is_broken()) server_->say_bye();
    return;
  }
  static_cast<void>(members_.release());
  static_cast<void>(server_.release());
  static_cast<void>(links_.release());
  static_cast<void>(caller_.release());
  static_cast<void>(pool_.release());
  static_cast<void>(owned_.release());
}

Result<std::shared_ptr<Session>> Session::connect(ConnectOptions options) {
  PIF_TRY_VALUE(const net::Route route, route_named(options.route));
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(options.where));
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  PIF_TRY(cluster::check_server_key(cluster));
  auto owned = std::make_unique<Owned>();
  net::MessengerOptions transport;
  transport.machine = cluster.own_machine();
  if (cluster.tcp == cluster::TcpMode::kCurve && (route == net::Route::kTcp || route == net::Route::kAuto)) {
    auto keys = cluster::load_client_keys(cluster);
    if (!keys && (route == net::Route::kTcp || !cluster.serves_here())) return fail(std::move(keys.error()));
    if (keys) transport.client_keys = std::move(*keys);  // without them other routes still work
    transport.io_threads = 2;                            // they encrypt: one core alone is the limit of a transfer
  }
  PIF_TRY_VALUE(owned->messenger, net::make_real_messenger(std::move(transport)));
  owned->storage = make_patient(component::make_real_storage(), std::min<Duration>(kSilenceMax, options.timeout));
  options.program = program_name(options);
  std::shared_ptr<Session> session(
      new Session({*owned->messenger, *owned->storage, owned->entropy}, std::move(options), route));
  owned->cluster = cluster;
  session->owned_ = std::move(owned);
  PIF_TRY(session->begin([&known = session->owned_->cluster] { return known.server_endpoints(); }, cluster.id));
  return session;
}

Result<std::shared_ptr<Session>> Session::connect_in(ClientWorld world, const proto::Endpoints& server,
                                                     ConnectOptions options) {
  PIF_TRY_VALUE(const net::Route route, route_named(options.route));
  if (options.program.empty()) options.program = program_name(options);
  std::shared_ptr<Session> session(new Session(world, std::move(options), route));
  const bool has_server = !server.unix_path().empty() || !server.ipc().empty() || !server.tcp().empty();
  if (has_server) PIF_TRY(session->begin([server] { return server; }, {}));
  return session;
}

Status Session::begin(ServerSession::Where where, std::string cluster) {
  PIF_ASSERT(server_ == nullptr && members_ == nullptr, route_);
  server_ = std::make_unique<ServerSession>(ServerSession::World{messenger_, *caller_, *links_, *user_},
                                            std::move(where), route_, std::move(cluster), options_);
  members_ = std::make_unique<MemberWatch>(*caller_, *server_);
  links_->set_find_again([this](const proto::NodeInfo& node, Duration patience) { return look_up(node, patience); });
  links_->set_renew_credential([this] { return renew_credential(options_.timeout); });
  return server_->hello(clock().now() + options_.timeout);
}

// A worker has no server.
Status Session::check_server() const {
  return server_ ? Status() : fail(Code::kUnavailable, "there is no PIF Server here to be asked");
}

Result<net::Packet> Session::ask_server(net::Packet request, Duration timeout) {
  PIF_TRY(check_server());
  return server_->ask(std::move(request), timeout);
}

Result<net::Packet> Session::change(net::Packet request, const Change& change) {
  PIF_TRY(check_server());
  return server_->change(std::move(request), change);
}

Pool& Session::pool() {
  if (pool_) return *pool_;
  pool_ = std::make_unique<Pool>(options_.threads != 0
                                     ? options_.threads
                                     : std::clamp(machine::usable_cores(), kThreadsMin, ConnectOptions::kThreadsMax));
  return *pool_;
}

bool Session::renew_credential(Duration patience) {
  return server_ && server_->renew_credential(clock().now() + std::min(kLookUpPatience, patience)).has_value();
}

// Asks the server where the LFSs are now. Whether this one is elsewhere than was known.
bool Session::look_up(const proto::NodeInfo& node, Duration patience) {
  PIF_ASSERT(server_ != nullptr, node.id());
  const proto::Endpoints before = links_->endpoints_of(node);
  net::Packet request;
  request.envelope.mutable_nodes();
  const auto reply = server_->ask(std::move(request), std::min(kLookUpPatience, patience));
  if (!reply) return false;
  for (const proto::NodeInfo& now : reply->envelope.nodes_reply().nodes()) links_->learn(now);
  const proto::Endpoints& after = links_->endpoints_of(node);
  return after.tcp() != before.tcp() || after.curve_key() != before.curve_key();
}

// ---- waiting for LFSs ----------------------------------------------------------------------------------------------

Result<Link> Session::link(const proto::NodeInfo& node, bool bulk) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  while (true) {
    PIF_TRY_VALUE(const Link* const found, links_->link(node, bulk));
    if (found != nullptr) return *found;
    PIF_TRY(caller_->pump(kNever));  // a Hello is under way, and ends by its deadline
  }
}

Result<net::PeerId> Session::node(const proto::NodeInfo& info) {
  PIF_TRY_VALUE(const Link found, link(info));
  return found.peer;
}

void Session::prepare(const std::vector<proto::NodeInfo>& nodes) {
  std::vector<const proto::NodeInfo*> started;
  for (const proto::NodeInfo& node : nodes) {
    if (!links_->has(node.id()) && links_->link(node)) started.push_back(&node);
  }
  for (const proto::NodeInfo* node : started) static_cast<void>(link(*node).has_value());
}

Result<net::CallId> Session::start_node(const proto::NodeInfo& info, net::Packet request, Duration timeout, bool bulk) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  if (server_) server_->keep_credential();
  PIF_TRY_VALUE(const Link found, link(info, bulk || request.body.size() > access::kSmallBodyBytes));
  request.envelope.set_credential(credential());
  return caller_->start(found.peer, std::move(request), or_default(timeout), info.name());
}

// Whether the same request may have an answer now; it was sent over `peer`, and `left` is left for another try.
bool Session::may_ask_again(const proto::NodeInfo& info, const Error& error, bool was_linked, net::PeerId peer,
                            Duration left) {
  if (error.code == Code::kBadCapability) return renew_credential(left);
  if (!access::is_lost(error.code) || !error.node.empty()) return false;
  if (error.code == Code::kTimeout) return links_->found_elsewhere(info, peer, left);
  links_->drop(info.id(), peer);
  return was_linked;
}

Result<net::Packet> Session::ask_node(const proto::NodeInfo& info, net::Packet request, Duration timeout) {
  PIF_TRY_VALUE(const Use use, Use::begin(*user_));
  const Time deadline = clock().now() + or_default(timeout);
  const bool repeatable = request.body.empty() && request.handles.empty();
  const proto::Envelope envelope = repeatable ? request.envelope : proto::Envelope();
  const bool was_linked = links_->has(info.id());
  PIF_TRY_VALUE(const net::CallId id, start_node(info, std::move(request), timeout));
  const net::PeerId peer = links_->peer_of(info.id());
  auto reply = caller_->wait(id);
  const bool again = !reply && may_ask_again(info, reply.error(), was_linked, peer, deadline - clock().now());
  if (const Duration left = deadline - clock().now(); again && repeatable && left > Duration::zero()) {
    net::Packet second;
    second.envelope = envelope;
    PIF_TRY_VALUE(const net::CallId second_id, start_node(info, std::move(second), left));
    reply = caller_->wait(second_id);
  }
  if (!reply && reply.error().node.empty()) reply.error().node = info.name();
  return reply;
}

void Session::tell_node(const proto::NodeInfo& info, net::Packet request) {
  const net::PeerId peer = links_->peer_of(info.id());
  if (peer == 0) return;
  request.envelope.set_credential(credential());
  caller_->forget(caller_->start(peer, std::move(request), options_.timeout, info.name()));
}

Status Session::pump(access::Requests& requests) {
  const std::size_t before = requests.size();
  PIF_TRY(requests.step());
  if (requests.idle() || requests.size() < before) return {};
  // Every call has its own deadline and ends by it, so the last one only bounds the wait for news.
  const Time until = std::min(requests.next_try(), clock().now() + timeout());
  if (!requests.has_news() && !requests.collect_for_credit()) PIF_TRY(caller_->pump(until));
  return requests.step();
}

Status Session::run(access::Requests& requests) {
  do PIF_TRY(pump(requests));
  while (!requests.idle());
  return {};
}

void Session::on_unasked(net::Delivery& delivery) {
  if (delivery.kind != net::Delivery::Kind::kClosed) return;
  if (server_) server_->closed(delivery.peer);
  links_->closed(delivery.peer);
}

}  // namespace pif::client
