#include "pif/net/real_messenger.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local/line.h"
#include "local/unix_socket.h"
#include "pif/base/assert.h"
#include "pif/net/calls.h"
#include "pif/net/system.h"
#include "zmq/zmq_transport.h"

namespace pif::net {
namespace {

constexpr int kEventsAtOnce = 64;
constexpr int kTakesBetweenPolls = 32;  // then sources that became ready meanwhile get their turn
constexpr rlim_t kDescriptorsWanted = 65536;

// A daemon holds a descriptor per peer and several per open component; the usual soft limit of 1,024 is for select().
// Returns how many there may be.
rlim_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDescriptorsWanted;
  if (limit.rlim_cur >= kDescriptorsWanted) return limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, kDescriptorsWanted);
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// What wake() writes to.
class WakeSource final : public Source {
 public:
  [[nodiscard]] Status start(Hub& hub) {
    fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd_) return fail_errno(errno, "cannot make an event descriptor");
    return hub.watch(fd_.get(), *this);
  }
  void wake() const {
    const std::uint64_t one = 1;
    // Can only fail when it would overflow, and then a wake is pending already.
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
  }
  Taken take() override {
    Taken out;
    std::uint64_t count = 0;
    if (::read(fd_.get(), &count, sizeof count) != static_cast<ssize_t>(sizeof count)) return out;
    out.what = Taken::What::kDelivery;
    out.delivery.kind = Delivery::Kind::kWake;
    return out;
  }

 private:
  UniqueFd fd_;
};

class RealMessenger final : public Messenger, public Hub {
 public:
  explicit RealMessenger(MessengerOptions options) : options_(std::move(options)) {}
  ~RealMessenger() override;
  [[nodiscard]] Status start();
  const proto::Endpoints& listening() const { return listening_; }
  std::uint64_t malformed() const { return malformed_; }

  Result<PeerId> connect(const proto::Endpoints& to, Route route) override;
  Result<PeerId> adopt(Handle connection) override;
  void disconnect(PeerId peer) override;
  Status send(PeerId peer, Packet packet) override;
  Result<std::optional<Delivery>> receive(Time deadline) override;
  const Identity& identity(PeerId peer) const override;
  void wake() override { wake_.wake(); }
  Clock& clock() override { return clock_; }

  PeerId add_line(std::unique_ptr<Line> line) override;
  void lose(PeerId peer) override;
  Status watch(int fd, Source& source) override;
  void watch_writable(int fd, Source& source, bool on) override;
  void unwatch(int fd, Source& source) override;
  void mark_ready(Source& source) override;
  std::span<std::byte> scratch() override;

 private:
  Result<PeerId> connect_by(const proto::Endpoints& to, Route route);
  Result<PeerId> connect_any(const proto::Endpoints& to);
  bool is_near(const proto::Endpoints& to) const;
  Result<PeerId> add_unix(UniqueFd fd);
  Result<ZmqTransport*> zmq();
  std::optional<Delivery> take_next();
  void answer_malformed(const Taken& taken);
  std::unique_ptr<Line> take_line(PeerId peer);
  void close_line(PeerId peer);
  Status poll(Time deadline);

  MessengerOptions options_;
  SystemClock clock_;
  UniqueFd epoll_;
  WakeSource wake_;
  proto::Endpoints listening_;
  std::unique_ptr<std::byte[]> scratch_;
  std::deque<Source*> ring_;  // sources that may have something
  std::uint64_t malformed_ = 0;
  int takes_ = 0;                      // since the last poll
  std::unique_ptr<ZmqTransport> zmq_;  // made when first needed; outlives the lines
  std::unordered_map<PeerId, std::unique_ptr<Line>> lines_;
  std::unordered_map<std::string, PeerId> outgoing_;  // by endpoint and route
  std::unique_ptr<UnixListener> listener_;
  PeerId next_peer_ = 1;
  std::deque<PeerId> lost_;            // kClosed not yet delivered
  std::unique_ptr<Line> last_closed_;  // for identity() of the last delivery
  PeerId last_closed_id_ = 0;
};

RealMessenger::~RealMessenger() {
  listener_.reset();
  last_closed_.reset();
  lines_.clear();
}

Status RealMessenger::start() {
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail_errno(errno, "cannot make an epoll descriptor");
  PIF_TRY(wake_.start(*this));
  const auto& listen = options_.listen;
  if (listen.unix_path.empty() && listen.ipc.empty() && listen.tcp.empty()) return {};
  const rlim_t descriptors = raise_descriptor_limit();
  if (!listen.unix_path.empty()) {
    const auto per_user = static_cast<std::uint32_t>(std::min<rlim_t>(kUnixPerUserMax, descriptors / 4));
    listener_ = std::make_unique<UnixListener>(*this, listen.unix_path, per_user);
    PIF_TRY(listener_->start());
    listening_.set_unix_path(listen.unix_path);
  }
  if (listen.ipc.empty() && listen.tcp.empty()) return {};
  PIF_TRY_VALUE(auto* transport, zmq());
  if (!listen.ipc.empty()) PIF_TRY(transport->listen_ipc(listen.ipc, listening_));
  if (!listen.tcp.empty()) PIF_TRY(transport->listen_tcp(listen, listening_));
  return {};
}

// ---- peers ----

Result<ZmqTransport*> RealMessenger::zmq() {
  if (!zmq_) {
    auto made = std::make_unique<ZmqTransport>(*this);
    PIF_TRY(made->start(options_.io_threads, options_.heartbeats));
    zmq_ = std::move(made);
  }
  return zmq_.get();
}

PeerId RealMessenger::add_line(std::unique_ptr<Line> line) {
  PIF_ASSERT(line != nullptr && !lines_.contains(next_peer_), next_peer_);
  lines_.emplace(next_peer_, std::move(line));
  return next_peer_++;
}

Result<PeerId> RealMessenger::add_unix(UniqueFd fd) {
  auto line = std::make_unique<UnixLine>(*this, std::move(fd));
  PIF_TRY(line->start());
  auto* raw = line.get();
  const PeerId id = add_line(std::move(line));
  raw->set_id(id);
  return id;
}

Result<PeerId> RealMessenger::connect(const proto::Endpoints& to, Route route) {
  const auto key = fmt::format("{}|{}|{}|{}|{}|{}", static_cast<int>(route), to.unix_path(), to.ipc(), to.tcp(),
                               to.curve_key(), to.machine());
  if (const auto known = outgoing_.find(key); known != outgoing_.end()) {
    if (lines_.contains(known->second)) return known->second;
    outgoing_.erase(known);
  }
  auto peer = route == Route::kAuto ? connect_any(to) : connect_by(to, route);
  if (!peer) return peer;
  PIF_ASSERT(lines_.contains(*peer), *peer, route);
  outgoing_.emplace(key, *peer);
  return peer;
}

bool RealMessenger::is_near(const proto::Endpoints& to) const {
  return !options_.machine || (to.machine() != 0 && to.machine() == *options_.machine);
}

Result<PeerId> RealMessenger::connect_by(const proto::Endpoints& to, Route route) {
  if (route != Route::kTcp && !is_near(to))
    return fail(Code::kUnavailable, "the peer is on another host, where only tcp leads (--route tcp or auto)");
  if (route == Route::kUnix) {
    if (to.unix_path().empty()) return fail(Code::kUnavailable, "the peer has no Unix socket");
    PIF_TRY_VALUE(auto fd, connect_unix(to.unix_path()));
    return add_unix(std::move(fd));
  }
  const bool tcp = route == Route::kTcp;
  if ((tcp ? to.tcp() : to.ipc()).empty())
    return fail(Code::kUnavailable,
                tcp ? "the peer does not listen on tcp; write tcp = \"curve\" into its file system's "
                      "pif.toml, then: pif down, pif up"
                    : "the peer does not listen on ipc");
  PIF_TRY_VALUE(auto* transport, zmq());
  if (!tcp) return transport->connect(to.ipc(), Identity::Via::kIpc, {}, {});
  return transport->connect(to.tcp(), to.curve_key().empty() ? Identity::Via::kTcp : Identity::Via::kCurve,
                            to.curve_key(), options_.client_keys);
}

Result<PeerId> RealMessenger::connect_any(const proto::Endpoints& to) {
  if (!to.unix_path().empty() && is_near(to)) {
    auto peer = connect_by(to, Route::kUnix);
    if (peer || to.tcp().empty()) return peer;
  }
  return connect_by(to, to.tcp().empty() && !to.ipc().empty() && is_near(to) ? Route::kIpc : Route::kTcp);
}

Result<PeerId> RealMessenger::adopt(Handle connection) {
  if (!connection.fd) return fail(Code::kInvalid, "a connection without a descriptor cannot be adopted");
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(connection.fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
    return fail(Code::kInvalid, "only a SOCK_SEQPACKET socket can be adopted as a peer");
  return add_unix(std::move(connection.fd));
}

std::unique_ptr<Line> RealMessenger::take_line(PeerId peer) {
  const auto found = lines_.find(peer);
  if (found == lines_.end()) return nullptr;
  auto line = std::move(found->second);
  lines_.erase(found);
  std::erase_if(outgoing_, [peer](const auto& entry) { return entry.second == peer; });
  return line;
}

void RealMessenger::disconnect(PeerId peer) {
  const auto line = take_line(peer);
  std::erase(lost_, peer);
}

void RealMessenger::lose(PeerId peer) {
  if (std::find(lost_.begin(), lost_.end(), peer) == lost_.end()) lost_.push_back(peer);
}

// Of a peer whose kClosed is being delivered: gone, but its identity can still be asked for.
void RealMessenger::close_line(PeerId peer) {
  PIF_ASSERT(!last_closed_ && last_closed_id_ == 0, peer, last_closed_id_);
  last_closed_ = take_line(peer);
  last_closed_id_ = peer;
  std::erase(lost_, peer);
}

const Identity& RealMessenger::identity(PeerId peer) const {
  static const Identity kNobody;
  if (const auto found = lines_.find(peer); found != lines_.end()) return found->second->identity;
  return peer == last_closed_id_ && last_closed_ ? last_closed_->identity : kNobody;
}

Status RealMessenger::send(PeerId peer, Packet packet) {
  const auto found = lines_.find(peer);
  if (found == lines_.end()) return fail(Code::kUnavailable, "the connection to the peer is closed");
  PIF_ASSERT(found->second != nullptr, peer);
  packet.envelope.set_version(kProtocolVersion);
  auto sent = found->second->send(std::move(packet));
  if (!sent && found->second->lost()) lose(peer);
  return sent;
}

// ---- the loop ----

Status RealMessenger::watch(int fd, Source& source) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &source;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno(errno, "cannot watch a socket");
  return {};
}

void RealMessenger::watch_writable(int fd, Source& source, bool on) {
  epoll_event event{};
  event.events = EPOLLIN | (on ? EPOLLOUT : 0u);
  event.data.ptr = &source;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void RealMessenger::unwatch(int fd, Source& source) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  if (source.in_ring) std::erase(ring_, &source);
  source.in_ring = false;
}

void RealMessenger::mark_ready(Source& source) {
  if (source.in_ring) return;
  source.in_ring = true;
  ring_.push_back(&source);
}

std::span<std::byte> RealMessenger::scratch() {
  if (!scratch_) scratch_.reset(new std::byte[kUnixPacketBytesMax + 1]);
  return {scratch_.get(), kUnixPacketBytesMax + 1};
}

Status RealMessenger::poll(Time deadline) {
  takes_ = 0;
  int timeout = 0;
  if (deadline == kNever) {
    timeout = -1;
  } else if (const Time now = clock_.now(); deadline > now) {
    // Rounded up, so that the deadline has passed afterwards; an hour at most, then the caller's loop asks again.
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
    timeout = static_cast<int>(std::min<std::int64_t>(ms, 3'600'000));
  }
  std::array<epoll_event, kEventsAtOnce> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, timeout);
  if (count < 0 && errno != EINTR) return fail_errno(errno, "cannot wait for messages");
  PIF_ASSERT(count <= kEventsAtOnce, count);
  for (int i = 0; i < count; ++i) mark_ready(*static_cast<Source*>(events[static_cast<std::size_t>(i)].data.ptr));
  return {};
}

void RealMessenger::answer_malformed(const Taken& taken) {
  ++malformed_;
  const auto& envelope = taken.delivery.packet.envelope;
  // Never an error for an error: two peers that do not understand each other would go on for ever.
  if (envelope.id() == 0 || is_reply(envelope)) return;
  // Best effort: if this cannot be sent, the requester's deadline tells it.
  (void)send(taken.delivery.peer, error_reply(envelope, taken.error, {}));
}

// Asks the sources in the ring, each in its turn.
std::optional<Delivery> RealMessenger::take_next() {
  while (!ring_.empty() && takes_ < kTakesBetweenPolls) {
    Source* source = ring_.front();
    ring_.pop_front();
    PIF_ASSERT(source->in_ring, ring_.size());
    source->in_ring = false;
    ++takes_;
    Taken taken = source->take();
    if (taken.what != Taken::What::kNothing && source->stays_ready()) mark_ready(*source);
    if (taken.what == Taken::What::kMalformed) answer_malformed(taken);
    if (taken.what != Taken::What::kDelivery) continue;
    PIF_ASSERT(taken.delivery.kind == Delivery::Kind::kWake || taken.delivery.peer != 0, taken.delivery.kind);
    if (taken.delivery.kind == Delivery::Kind::kClosed) close_line(taken.delivery.peer);
    return std::move(taken.delivery);
  }
  return std::nullopt;
}

Result<std::optional<Delivery>> RealMessenger::receive(Time deadline) {
  last_closed_.reset();
  last_closed_id_ = 0;
  for (bool waited = false;;) {
    if (!lost_.empty()) {
      Delivery out;
      out.kind = Delivery::Kind::kClosed;
      out.peer = lost_.front();
      close_line(out.peer);
      return out;
    }
    if (auto delivery = take_next()) return delivery;
    if (!lost_.empty()) continue;
    if (waited && clock_.now() >= deadline) return std::nullopt;
    PIF_TRY(poll(ring_.empty() ? deadline : Time{}));
    waited = true;
  }
}

}  // namespace

Result<CurveKeys> make_curve_keys() { return make_zmq_curve_keys(); }

Result<std::unique_ptr<Messenger>> make_real_messenger(MessengerOptions options) {
  // protobuf would say on stderr, which is a daemon's log, what is wrong with each message that anybody sends.
  google::protobuf::SetLogHandler(nullptr);
  auto messenger = std::make_unique<RealMessenger>(std::move(options));
  PIF_TRY(messenger->start());
  return messenger;
}

proto::Endpoints listening(const Messenger& messenger) {
  const auto* real = dynamic_cast<const RealMessenger*>(&messenger);
  return real == nullptr ? proto::Endpoints{} : real->listening();
}

std::uint64_t malformed_count(const Messenger& messenger) {
  const auto* real = dynamic_cast<const RealMessenger*>(&messenger);
  return real == nullptr ? 0 : real->malformed();
}

}  // namespace pif::net
