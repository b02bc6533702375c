#include "zmq/zmq_transport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <unordered_map>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "local/unix_socket.h"
#include "pif/base/assert.h"
#include "pif/base/timers.h"
#include "zmq/zap.h"
#include "zmq/zmq_library.h"
#include "zmq/zmq_socket.h"

namespace pif::net {
namespace {

constexpr std::size_t kBacklogBytesMax = 64u << 20;  // under way to one peer: four of the longest records
constexpr int kSendMessagesMax = 4096;               // the same, counted in messages
constexpr int kReceiveMessagesMax = 64;              // of one peer, read from the network but not yet by us
constexpr int kLingerMs = 500;                       // for what was sent just before the end
constexpr int kHandshakeMs = 3000;
constexpr int kConnectMs = 3000;          // else the kernel asks a host that is away for two minutes, ever more seldom
constexpr int kKeepAliveIdleSeconds = 5;  // of a connection without heartbeats: its host is gone after 8 s
constexpr int kKeepAliveEverySeconds = 1;
constexpr int kKeepAliveCount = 3;
constexpr int kReconnectMs = 10;
constexpr int kReconnectMaxMs = 200;
constexpr int kSocketsMax = 8192;
constexpr std::size_t kRouterPeersMax = 16384;  // then the one idle for longest is forgotten
constexpr std::size_t kCopiedHeaderMax = 4096;
constexpr std::size_t kKeyCharacters = 40;  // Z85 of 32 bytes
constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";

int milliseconds(Duration duration) { return static_cast<int>(duration / std::chrono::milliseconds(1)); }

Status set_common(ZmqSocket& socket, bool heartbeats) {
  PIF_TRY(socket.set(zmq::sockopt::linger, kLingerMs));
  PIF_TRY(socket.set(zmq::sockopt::sndhwm, kSendMessagesMax));
  PIF_TRY(socket.set(zmq::sockopt::rcvhwm, kReceiveMessagesMax));
  PIF_TRY(socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs));
  PIF_TRY(socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs));
  PIF_TRY(socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMaxMs));
  PIF_TRY(socket.set(zmq::sockopt::connect_timeout, kConnectMs));
  PIF_TRY(socket.set(zmq::sockopt::tcp_keepalive, 1));
  PIF_TRY(socket.set(zmq::sockopt::tcp_keepalive_idle, kKeepAliveIdleSeconds));
  PIF_TRY(socket.set(zmq::sockopt::tcp_keepalive_intvl, kKeepAliveEverySeconds));
  PIF_TRY(socket.set(zmq::sockopt::tcp_keepalive_cnt, kKeepAliveCount));
  if (heartbeats) {
    PIF_TRY(socket.set(zmq::sockopt::heartbeat_ivl, milliseconds(kHeartbeatEvery)));
    PIF_TRY(socket.set(zmq::sockopt::heartbeat_timeout, milliseconds(kSilenceMax)));
    PIF_TRY(socket.set(zmq::sockopt::heartbeat_ttl, milliseconds(kSilenceMax)));
  }
  return socket.set(zmq::sockopt::maxmsgsize, std::int64_t{kBodyBytesMax});
}

// A key in text form. ZeroMQ tells it from a binary one, which we do not have, by its length alone.
template <typename Option>
Status set_key(ZmqSocket& socket, Option option, const std::string& key) {
  if (key.size() != kKeyCharacters)
    return fail(Code::kInvalid, fmt::format("a CURVE key has {} characters, this one {}", kKeyCharacters, key.size()));
  return socket.set(option, key);
}

// `size` bytes.
zmq::message_t serialized(const proto::Envelope& envelope, std::size_t size, const std::shared_ptr<Backlog>& backlog) {
  if (size <= kCopiedHeaderMax) {
    zmq::message_t message(size);
    envelope.SerializeWithCachedSizesToArray(message.data<std::uint8_t>());
    return message;
  }
  Buffer bytes(size);
  envelope.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(bytes.data()));
  return message_of(std::move(bytes), backlog);
}

// Sends the frames of a packet; the routing id is sent already where there is one.
Status send_frames(ZmqSocket& socket, const std::string* routing_id, Packet packet,
                   const std::shared_ptr<Backlog>& backlog) {
  if (!packet.handles.empty())
    return fail(Code::kUnsupported, "descriptors cannot be passed over ZeroMQ, only over a Unix socket");
  PIF_ASSERT(backlog != nullptr, packet.body.size());
  PIF_TRY_VALUE(const auto size, frame_size(packet));
  if (backlog->bytes.load(std::memory_order_relaxed) > kBacklogBytesMax)
    return fail(Code::kUnavailable, "the peer does not read what it is sent; given up");
  const auto sent_id = [&] {
    if (routing_id == nullptr) return ZmqSocket::Io::kDone;
    zmq::message_t id(*routing_id);
    return socket.send(id, true);
  }();
  if (sent_id == ZmqSocket::Io::kAgain)
    return fail(Code::kUnavailable, "the peer does not read what it is sent; given up");
  if (sent_id != ZmqSocket::Io::kDone) return fail(Code::kUnavailable, "the peer has closed the connection");

  auto head = serialized(packet.envelope, size, backlog);
  const bool has_body = !packet.body.empty();
  auto body = message_of(std::move(packet.body), backlog);
  if (socket.send(head, has_body) != ZmqSocket::Io::kDone ||
      (has_body && socket.send(body, false) != ZmqSocket::Io::kDone))
    return fail(Code::kUnavailable, "the peer does not read what it is sent; given up");
  return {};
}

// "KEY HOLDER", as the ZAP handler said; empty: it has not.
std::string_view user_of(zmq::message_t& frame) {
  try {
    return frame.gets("User-Id");
  } catch (const zmq::error_t&) {
    return {};
  }
}

// One message without its routing id, as a delivery; the first frame is read already.
Taken take_message(ZmqSocket& socket, zmq::message_t& head, PeerId peer) {
  Taken out;
  out.delivery.peer = peer;
  zmq::message_t body;
  bool extra = false;
  for (bool more = head.more(), first = true; more; first = false) {
    zmq::message_t rest;
    zmq::message_t& into = first ? body : rest;
    if (socket.receive(into) != ZmqSocket::Io::kDone) break;
    extra = extra || !first;
    more = into.more();
  }
  auto& packet = out.delivery.packet;
  auto parsed = parse_envelope(bytes_of(head), packet.envelope);
  if (parsed && extra) parsed = fail(Code::kInvalid, "a message has at most two frames");
  if (!parsed) {
    out.what = Taken::What::kMalformed;
    out.error = std::move(parsed.error());
    return out;
  }
  packet.body = buffer_of(std::move(body));
  out.what = Taken::What::kDelivery;
  return out;
}

// A peer we connected to.
class DealerLine final : public Line, public Source {
 public:
  DealerLine(Hub& hub, ZmqSocket socket) : hub_(hub), socket_(std::move(socket)) {}
  ~DealerLine() override { hub_.unwatch(socket_.fd(), *this); }
  void set_id(PeerId id) { id_ = id; }
  [[nodiscard]] Status start() { return hub_.watch(socket_.fd(), *this); }

  Status send(Packet packet) override {
    auto sent = send_frames(socket_, nullptr, std::move(packet), backlog_);
    lost_ = lost_ || (!sent && sent.error().code == Code::kUnavailable);
    hub_.mark_ready(*this);  // sending may have taken in what the descriptor would have shown
    return sent;
  }
  bool lost() const override { return lost_; }
  bool stays_ready() const override { return true; }

  Taken take() override {
    zmq::message_t head;
    if (socket_.receive(head) != ZmqSocket::Io::kDone) return {};
    return take_message(socket_, head, id_);
  }

 private:
  Hub& hub_;
  ZmqSocket socket_;
  PeerId id_ = 0;
  std::shared_ptr<Backlog> backlog_ = std::make_shared<Backlog>();
  bool lost_ = false;
};

// "tcp://[ADDRESS]:PORT".
bool is_ipv6(std::string_view endpoint) { return endpoint.starts_with("tcp://["); }

// "tcp://NAME:PORT": ZeroMQ looks the name up, and finds addresses of both kinds only where it may use both.
bool is_named(std::string_view endpoint) {
  if (!endpoint.starts_with(kTcp)) return false;
  const std::string host(endpoint.substr(kTcp.size(), endpoint.rfind(':') - kTcp.size()));
  in_addr four{};
  return inet_pton(AF_INET, host.c_str(), &four) != 1;
}

tl::unexpected<Error> explain_bind(const std::string& endpoint, Error error) {
  if (error.code == Code::kBusy)
    error.text = fmt::format(
        "cannot listen on {}: the port is in use: stop the program that has it (ss -ltnp shows it), or choose another",
        endpoint);
  if (error.code == Code::kInvalid)
    error.text = fmt::format("cannot listen on {}: this is no address of this machine", endpoint);
  return fail(std::move(error));
}

}  // namespace

class RouterLine;

// A socket where others connect.
class ZmqRouter final : public Source {
 public:
  // keys: of CURVE, and outlives it; else null.
  ZmqRouter(Hub& hub, Identity::Via via, KeyRing* keys) : hub_(hub), via_(via), keys_(keys) {}
  ~ZmqRouter() override { hub_.unwatch(socket_.fd(), *this); }
  [[nodiscard]] Status start(zmq::context_t& context, bool heartbeats);
  ZmqSocket& socket() { return socket_; }
  Hub& hub() { return hub_; }

  Taken take() override;
  bool stays_ready() const override { return true; }
  void forget(RouterLine& line);

 private:
  RouterLine* find_line(const std::string& routing_id, std::string_view user);
  RouterLine& add_line(std::string routing_id, std::string_view user);
  bool admits(std::string_view user) const;
  std::shared_ptr<Backlog> backlog_of(const std::string& routing_id);

  Hub& hub_;
  Identity::Via via_;
  KeyRing* const keys_;
  ZmqSocket socket_;
  std::unordered_map<std::string, RouterLine*> lines_;  // by routing id; the hub owns them
  std::list<RouterLine*> idle_first_;
  std::unordered_map<std::string, std::weak_ptr<Backlog>> forgotten_;  // what is still under way to peers given up
};

// A peer that connected to a ZmqRouter.
class RouterLine final : public Line {
 public:
  RouterLine(ZmqRouter& router, std::string its_routing_id, std::string its_user, std::shared_ptr<Backlog> its_backlog)
      : routing_id(std::move(its_routing_id)),
        user(std::move(its_user)),
        backlog(std::move(its_backlog)),
        router_(router) {}
  ~RouterLine() override { router_.forget(*this); }

  Status send(Packet packet) override {
    auto sent = send_frames(router_.socket(), &routing_id, std::move(packet), backlog);
    lost_ = lost_ || (!sent && sent.error().code == Code::kUnavailable);
    router_.hub().mark_ready(router_);
    return sent;
  }
  bool lost() const override { return lost_; }

  const std::string routing_id;
  const std::string user;        // "KEY HOLDER", CURVE only
  std::uint64_t generation = 0;  // of the keys, when this one was last seen among them
  const std::shared_ptr<Backlog> backlog;
  PeerId id = 0;
  std::list<RouterLine*>::iterator place;

 private:
  ZmqRouter& router_;
  bool lost_ = false;
};

Status ZmqRouter::start(zmq::context_t& context, bool heartbeats) {
  PIF_TRY_VALUE(socket_, ZmqSocket::open(context, zmq::socket_type::router));
  PIF_TRY(set_common(socket_, heartbeats));
  PIF_TRY(socket_.set(zmq::sockopt::router_mandatory, 1));
  return hub_.watch(socket_.fd(), *this);
}

Taken ZmqRouter::take() {
  zmq::message_t id;
  if (socket_.receive(id) != ZmqSocket::Io::kDone) return {};
  zmq::message_t head;
  if (!id.more() || socket_.receive(head) != ZmqSocket::Io::kDone) {
    Taken nothing;
    nothing.what = Taken::What::kMore;
    return nothing;
  }
  const auto user = keys_ != nullptr ? user_of(head) : std::string_view{};
  std::string routing_id = id.to_string();
  RouterLine* line = find_line(routing_id, user);
  if (keys_ != nullptr && (line == nullptr || line->generation != keys_->generation()) && !admits(user)) {
    if (line != nullptr) hub_.lose(line->id);
    (void)take_message(socket_, head, 0);  // all of its frames
    Taken nothing;
    nothing.what = Taken::What::kMore;
    return nothing;
  }
  if (line == nullptr) line = &add_line(std::move(routing_id), user);
  if (keys_ != nullptr) line->generation = keys_->generation();
  return take_message(socket_, head, line->id);
}

// Its key was good at the handshake, and may have been removed since.
bool ZmqRouter::admits(std::string_view user) const {
  return !keys_->holder(std::string(split_user(user).first)).empty();
}

RouterLine* ZmqRouter::find_line(const std::string& routing_id, std::string_view user) {
  const auto found = lines_.find(routing_id);
  if (found == lines_.end()) return nullptr;
  RouterLine* line = found->second;
  idle_first_.splice(idle_first_.end(), idle_first_, line->place);
  if (line->user == user) return line;
  hub_.lose(line->id);  // somebody else has its routing id now
  lines_.erase(found);
  return nullptr;
}

RouterLine& ZmqRouter::add_line(std::string routing_id, std::string_view user) {
  if (lines_.size() >= kRouterPeersMax) hub_.lose(idle_first_.front()->id);
  PIF_ASSERT(!lines_.contains(routing_id) && lines_.size() <= idle_first_.size(), lines_.size(), idle_first_.size());
  auto made = std::make_unique<RouterLine>(*this, routing_id, std::string(user), backlog_of(routing_id));
  auto& line = *made;
  line.identity.via = via_;
  if (keys_ != nullptr) parse_holder(split_user(user).second, line.identity);
  line.place = idle_first_.insert(idle_first_.end(), &line);
  lines_.emplace(std::move(routing_id), &line);
  line.id = hub_.add_line(std::move(made));
  return line;
}

std::shared_ptr<Backlog> ZmqRouter::backlog_of(const std::string& routing_id) {
  const auto found = forgotten_.find(routing_id);
  auto backlog = found == forgotten_.end() ? nullptr : found->second.lock();
  return backlog ? backlog : std::make_shared<Backlog>();
}

void ZmqRouter::forget(RouterLine& line) {
  PIF_ASSERT(!idle_first_.empty(), lines_.size());
  idle_first_.erase(line.place);
  if (const auto found = lines_.find(line.routing_id); found != lines_.end() && found->second == &line)
    lines_.erase(found);
  std::erase_if(forgotten_, [](const auto& entry) { return entry.second.expired(); });
  if (line.backlog->bytes.load(std::memory_order_relaxed) != 0)
    forgotten_.insert_or_assign(line.routing_id, line.backlog);
}

// ---- transport ----

ZmqTransport::ZmqTransport(Hub& hub) : hub_(hub) {}

ZmqTransport::~ZmqTransport() = default;

Status ZmqTransport::start(unsigned io_threads, bool heartbeats) {
  heartbeats_ = heartbeats;
  PIF_TRY(load_zmq());
  try {
    context_.emplace(static_cast<int>(std::max(1u, io_threads)), kSocketsMax);
  } catch (const zmq::error_t& error) {
    return fail_zmq(error, "cannot start ZeroMQ");
  }
  return {};
}

Status ZmqTransport::listen_ipc(const std::string& endpoint, proto::Endpoints& bound) {
  if (!endpoint.starts_with(kIpc)) return fail(Code::kInvalid, fmt::format("'{}' is not an ipc:// endpoint", endpoint));
  // ZeroMQ would take the name away from whoever listens there.
  if (answers(endpoint.substr(kIpc.size()), SOCK_STREAM))
    return fail(Code::kBusy, fmt::format("cannot listen on {}: another daemon answers there; stop it first", endpoint));
  auto router = std::make_unique<ZmqRouter>(hub_, Identity::Via::kIpc, nullptr);
  PIF_TRY(router->start(*context_, heartbeats_));
  PIF_TRY(router->socket().bind(endpoint));
  bound.set_ipc(router->socket().last_endpoint());
  // Anybody may connect; requests are judged by the credential in them. A worker may not change modes (EPERM): only its
  // own user reaches its socket, which is all it needs.
  if (chmod(bound.ipc().substr(kIpc.size()).c_str(), 0666) != 0 && errno != EPERM)
    return fail_errno(errno, fmt::format("cannot open {} to other users", bound.ipc()));
  routers_.push_back(std::move(router));
  return {};
}

Status ZmqTransport::listen_tcp(const ListenOptions& options, proto::Endpoints& bound) {
  if (!options.tcp.starts_with(kTcp))
    return fail(Code::kInvalid, fmt::format("'{}' is not a tcp:// endpoint", options.tcp));
  const bool curve = !options.curve.secret_key.empty();
  if (!curve && !options.insecure_loopback)
    return fail(Code::kInvalid,
                fmt::format("cannot listen on {} without keys; make them with 'pif init --curve', or use "
                            "--insecure-loopback for tests on this machine",
                            options.tcp));
  if (!curve && !options.tcp.starts_with("tcp://127.0.0.1:"))
    return fail(
        Code::kInvalid,
        fmt::format("cannot listen on {} without keys: only tcp://127.0.0.1:PORT may be insecure", options.tcp));
  if (curve && !zap_) {  // before the socket is bound: ZeroMQ admits everybody while nobody answers for the keys
    keys_ = std::make_unique<KeyRing>(options.key_folder, options.host_folder);
    if (!options.only_key.empty()) keys_->add_own(options.only_key);
    zap_ = std::make_unique<ZapServer>(hub_, *keys_, options.on_refused);
    PIF_TRY(zap_->start(*context_));
  }
  auto router = std::make_unique<ZmqRouter>(hub_, curve ? Identity::Via::kCurve : Identity::Via::kTcp, keys_.get());
  PIF_TRY(router->start(*context_, heartbeats_));
  auto& socket = router->socket();
  if (curve) {
    PIF_TRY(socket.set(zmq::sockopt::zap_domain, kZapDomain));
    PIF_TRY(socket.set(zmq::sockopt::curve_server, 1));
    PIF_TRY(set_key(socket, zmq::sockopt::curve_secretkey, options.curve.secret_key));
    bound.set_curve_key(options.curve.public_key);
  }
  if (is_ipv6(options.tcp)) PIF_TRY(socket.set(zmq::sockopt::ipv6, 1));
  if (Status done = socket.bind(options.tcp); !done) return explain_bind(options.tcp, std::move(done.error()));
  bound.set_tcp(options.announce.empty() ? socket.last_endpoint() : options.announce);
  routers_.push_back(std::move(router));
  return {};
}

Result<PeerId> ZmqTransport::connect(const std::string& endpoint, Identity::Via via, const std::string& server_key,
                                     const CurveKeys& keys) {
  if (via == Identity::Via::kCurve && keys.secret_key.empty())
    return fail(Code::kPermission, fmt::format("{} admits only holders of a key, and there is none here", endpoint));
  PIF_ASSERT(context_.has_value(), via);
  PIF_TRY_VALUE(auto socket, ZmqSocket::open(*context_, zmq::socket_type::dealer));
  PIF_TRY(set_common(socket, heartbeats_));
  if (via == Identity::Via::kCurve) {
    PIF_TRY(set_key(socket, zmq::sockopt::curve_serverkey, server_key));
    PIF_TRY(set_key(socket, zmq::sockopt::curve_publickey, keys.public_key));
    PIF_TRY(set_key(socket, zmq::sockopt::curve_secretkey, keys.secret_key));
  }
  if (is_ipv6(endpoint) || is_named(endpoint)) PIF_TRY(socket.set(zmq::sockopt::ipv6, 1));
  PIF_TRY(socket.connect(endpoint));
  auto line = std::make_unique<DealerLine>(hub_, std::move(socket));
  PIF_TRY(line->start());
  line->identity.via = via;
  auto* raw = line.get();
  const PeerId id = hub_.add_line(std::move(line));
  raw->set_id(id);
  return id;
}

Result<CurveKeys> make_zmq_curve_keys() {
  std::array<char, 41> public_key{};
  std::array<char, 41> secret_key{};
  PIF_TRY(load_zmq());
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    return fail(Code::kUnsupported, "this ZeroMQ was built without CURVE");
  return CurveKeys{public_key.data(), secret_key.data()};
}

}  // namespace pif::net
