#include "sim/links.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/limits.h"
#include "pif/net/calls.h"

namespace pif::sim {
namespace {

constexpr std::size_t kInboxBytesMax = 64u << 20;
constexpr std::size_t kInboxParcelsMax = 4096;
constexpr std::size_t kHandlesMax = 8;
constexpr unsigned kReceivesAfterDeathMax = 10'000;
constexpr std::string_view kPrefix = "sim:";

net::Identity identity_of(const ActorState& actor, net::Identity::Via via) {
  net::Identity out;
  out.via = via;
  if (via != net::Identity::Via::kSimulated) return out;  // as with ZeroMQ: the transport vouches for nobody
  out.has_uid = true;
  out.uid = actor.who.uid;
  out.gids = actor.who.gids;
  out.pid = static_cast<std::int32_t>(actor.id);
  return out;
}

// An end that is in a handle; if nobody adopts it, the other side sees it close.
struct LooseEnd {
  LooseEnd(Switchboard& switchboard, Port its_port) : board(switchboard), port(std::move(its_port)) {}
  ~LooseEnd() {
    board.loose.erase(this);
    if (port.link) board.close(port);
  }
  Switchboard& board;
  Port port;
};

}  // namespace

// ---- switchboard ----

Port Switchboard::attach(ActorState& actor, std::shared_ptr<Link> link, unsigned side) {
  Port port{std::move(link), side};
  auto& end = port.mine();
  end.owner = &actor;
  end.peer = actor.messenger.next_peer_++;
  return port;
}

Port Switchboard::connect(ActorState& from, ActorState& to, net::Identity::Via via) {
  auto link = std::make_shared<Link>();
  link->connectionless = via != net::Identity::Via::kSimulated;
  link->ends[0].seen = identity_of(to, via);
  link->ends[1].seen = identity_of(from, via);
  const Port far = attach(to, link, 1);
  to.messenger.peers_.emplace(far.mine().peer, SimMessenger::Peer{far, {}, via});
  return Port{link, 0};
}

std::pair<Handle, Handle> Switchboard::make_pair() {
  auto link = std::make_shared<Link>();
  const auto handle_of = [&](unsigned side) {
    auto end = std::make_shared<LooseEnd>(*this, Port{link, side});
    loose.insert(end.get());
    Handle out;
    out.object = std::move(end);
    return out;
  };
  auto first = handle_of(0);
  return {std::move(first), handle_of(1)};
}

Time Switchboard::arrival(const Port& port) {
  const auto& options = world.options();
  auto& to = port.theirs();
  const auto spread = static_cast<std::uint64_t>((options.delay_max - options.delay_min).count());
  const Time arrives = world.now() + options.delay_min + Duration(static_cast<std::int64_t>(world.pick(spread + 1)));
  if (port.link->connectionless && !keeps_order(port) && world.chance(options.reorder))
    return arrives +
           Duration(static_cast<std::int64_t>(world.pick(static_cast<std::uint64_t>(options.reorder_max.count()))));
  to.last_arrival = std::max(to.last_arrival, arrives);  // in order
  return to.last_arrival;
}

void Switchboard::post(const Port& port, Parcel parcel) {
  auto& to = port.theirs();
  if (!to.open) return;
  parcel.arrives = arrival(port);
  to.inbox_bytes += parcel.envelope.size() + parcel.body.size();
  const auto behind = [](Time arrives, const Parcel& other) { return arrives < other.arrives; };
  const auto place = std::upper_bound(to.inbox.begin(), to.inbox.end(), parcel.arrives, behind);
  to.inbox.insert(place, std::move(parcel));
}

bool Switchboard::is_cut_off(const Port& port) const {
  const auto *from = port.mine().owner, *to = port.theirs().owner;
  return from != nullptr && to != nullptr && world.is_cut(from->name, to->name);
}

bool Switchboard::keeps_order(const Port& port) const {
  const auto *from = port.mine().owner, *to = port.theirs().owner;
  return from != nullptr && to != nullptr && world.keeps_order(from->name, to->name);
}

Status Switchboard::send(const Port& port, net::Packet packet) {
  packet.envelope.set_version(kProtocolVersion);
  Parcel parcel;
  parcel.envelope = packet.envelope.SerializeAsString();
  const bool is_unix = !port.link->connectionless;
  if (is_unix && parcel.envelope.size() + packet.body.size() + 4 > kUnixPacketBytesMax)
    return fail(Code::kTooLarge, "over the limit of a Unix socket's packet");
  if (parcel.envelope.size() > kHeaderBytesMax || packet.body.size() > kBodyBytesMax)
    return fail(Code::kTooLarge, "over the limit of a message");
  if (!is_unix && !packet.handles.empty()) return fail(Code::kUnsupported, "handles cannot be passed by this route");
  if (packet.handles.size() > kHandlesMax) return fail(Code::kTooLarge, "too many handles");
  auto& to = port.theirs();
  if (to.inbox.size() >= kInboxParcelsMax || to.inbox_bytes + packet.body.size() > kInboxBytesMax)
    return fail(Code::kUnavailable, "the peer does not read what it is sent; disconnected");
  if (!is_unix && (is_cut_off(port) || world.chance(world.options().drop))) return {};
  const bool twice = !is_unix && !keeps_order(port) && world.chance(world.options().duplicate);
  if (twice) post(port, Parcel{{}, false, parcel.envelope, net::Buffer::copy_of(packet.body.span()), {}});
  parcel.body = net::Buffer::copy_of(packet.body.span());
  parcel.handles = std::move(packet.handles);
  post(port, std::move(parcel));
  return {};
}

void Switchboard::close(const Port& port) {
  if (!port.mine().open) return;
  if (!port.link->connectionless) {
    Parcel last;
    last.closed = true;
    post(port, std::move(last));
  }
  port.mine().open = false;
  port.mine().owner = nullptr;
  // Outside the loop: dropping a handle may close another link.
  const auto dropped = std::exchange(port.mine().inbox, {});
}

void Switchboard::sever(Link& link) {
  std::vector<Parcel> lost;  // dropping a handle may close another link: last
  for (auto& end : link.ends) {
    if (!end.open) continue;
    for (auto keep = world.pick(end.inbox.size() + 1); end.inbox.size() > keep;) {
      end.inbox_bytes -= end.inbox.back().envelope.size() + end.inbox.back().body.size();
      lost.push_back(std::move(end.inbox.back()));
      end.inbox.pop_back();
    }
    Parcel last;
    last.arrives = std::max(end.last_arrival, world.now());
    last.closed = true;
    end.inbox.push_back(std::move(last));
  }
}

// ---- messenger ----

Result<net::PeerId> SimMessenger::connect(const proto::Endpoints& to, net::Route route) {
  using Via = net::Identity::Via;
  switch (route) {
    case net::Route::kUnix: return connect_name(to.unix_path(), Via::kSimulated);
    case net::Route::kIpc:  // who only knows the one name of a daemon means the same
      return connect_name(to.ipc().empty() ? to.unix_path() : to.ipc(), Via::kIpc);
    case net::Route::kTcp: return connect_name(to.tcp().empty() ? to.unix_path() : to.tcp(), Via::kTcp);
    case net::Route::kAuto: break;
  }
  if (!to.unix_path().empty()) return connect_name(to.unix_path(), Via::kSimulated);
  return to.tcp().empty() ? connect_name(to.ipc(), Via::kIpc) : connect_name(to.tcp(), Via::kTcp);
}

Result<net::PeerId> SimMessenger::connect_name(const std::string& endpoint, net::Identity::Via via) {
  if (!endpoint.starts_with(kPrefix))
    return fail(Code::kUnavailable, fmt::format("'{}' is nowhere in this world", endpoint));
  const std::string name = endpoint.substr(kPrefix.size());
  const auto key = fmt::format("{}|{}", static_cast<int>(via), name);
  if (const auto known = outgoing_.find(key); known != outgoing_.end() && peers_.contains(known->second))
    return known->second;
  if (actor_.killed) return fail(Code::kUnavailable, "this actor was killed");
  const auto found = world_.find(name);
  const bool is_unix = via == net::Identity::Via::kSimulated;
  if (!found && is_unix) return fail(Code::kUnavailable, fmt::format("cannot connect to {}: nobody answers", name));
  const net::PeerId id = next_peer_++;
  Peer peer{{}, name, via};
  if (found) {
    peer.port = world_.links_->connect(actor_, *world_.actors_[*found], via);
    peer.port.mine().owner = &actor_;
    peer.port.mine().peer = id;
  }
  peers_.emplace(id, std::move(peer));
  outgoing_[key] = id;
  return id;
}

Result<net::PeerId> SimMessenger::adopt(Handle connection) {
  if (!world_.links_->loose.contains(connection.object.get()))
    return fail(Code::kInvalid, "what is adopted is not an end of a connection");
  auto& end = *static_cast<LooseEnd*>(connection.object.get());
  Port port = world_.links_->attach(actor_, std::exchange(end.port.link, nullptr), end.port.side);
  port.theirs().seen = identity_of(actor_, net::Identity::Via::kSimulated);
  if (port.theirs().owner != nullptr)
    port.mine().seen = identity_of(*port.theirs().owner, net::Identity::Via::kSimulated);
  const net::PeerId id = port.mine().peer;
  peers_.emplace(id, Peer{std::move(port), {}, net::Identity::Via::kSimulated});
  return id;
}

void SimMessenger::disconnect(net::PeerId peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  if (found->second.port.link) world_.links_->close(found->second.port);
  peers_.erase(found);
}

Status SimMessenger::send(net::PeerId id, net::Packet packet) {
  const auto found = peers_.find(id);
  if (actor_.killed || found == peers_.end()) return fail(Code::kUnavailable, "the connection to the peer is closed");
  auto& peer = found->second;
  const bool connectionless = peer.via != net::Identity::Via::kSimulated;
  if (connectionless && !peer.far_name.empty() && (!peer.port.link || !peer.port.theirs().open)) {
    const auto far = world_.find(peer.far_name);  // ZeroMQ connects again by itself
    if (!far) return {};
    peer.port = world_.links_->connect(actor_, *world_.actors_[*far], peer.via);
    peer.port.mine().owner = &actor_;
    peer.port.mine().peer = id;
  }
  if (!connectionless && !peer.port.theirs().open)
    return fail(Code::kUnavailable, "the peer has closed the connection");
  auto sent = world_.links_->send(peer.port, std::move(packet));
  if (!sent && sent.error().code == Code::kUnavailable) {
    world_.links_->close(peer.port);
    Parcel gone;  // tells ourselves
    gone.arrives = world_.now();
    gone.closed = true;
    peer.port.mine().inbox.push_back(std::move(gone));
  }
  return sent;
}

void SimMessenger::break_some() {
  std::vector<Link*> candidates;
  for (const auto& [id, peer] : peers_)
    if (peer.port.link && !peer.port.link->connectionless && peer.port.theirs().owner != nullptr)
      candidates.push_back(peer.port.link.get());
  if (!candidates.empty()) world_.links_->sever(*candidates[world_.pick(candidates.size())]);
}

bool SimMessenger::has_delivery() const { return next_arrival() <= world_.now(); }

Time SimMessenger::next_arrival() const {
  Time out = kNever;
  for (const auto& [id, peer] : peers_)
    if (peer.port.link && !peer.port.mine().inbox.empty()) out = std::min(out, peer.port.mine().inbox.front().arrives);
  return out;
}

Result<std::optional<net::Delivery>> SimMessenger::receive(Time deadline) {
  last_closed_id_ = 0;
  for (;;) {
    if (actor_.killed) {
      if (++actor_.receives_after_death > kReceivesAfterDeathMax)
        throw Failure(fmt::format("{} was killed, and goes on receiving in spite of errors", actor_.name));
      return fail(Code::kCancelled, "this actor was killed");
    }
    actor_.deadline = deadline;
    world_.yield(actor_);
    if (actor_.killed) continue;
    if (auto delivery = take()) return delivery;
    if (actor_.woken.exchange(false)) {
      net::Delivery out;
      out.kind = net::Delivery::Kind::kWake;
      return out;
    }
    if (world_.now() >= deadline) return std::nullopt;
  }
}

// One of the peers with something for us, as the seed decides.
std::optional<net::Delivery> SimMessenger::take() {
  for (;;) {
    std::vector<net::PeerId> ready;
    for (const auto& [id, peer] : peers_)
      if (peer.port.link && !peer.port.mine().inbox.empty() && peer.port.mine().inbox.front().arrives <= world_.now())
        ready.push_back(id);
    if (ready.empty()) return std::nullopt;
    const net::PeerId id = ready[world_.pick(ready.size())];
    auto& end = peers_.at(id).port.mine();
    Parcel parcel = std::move(end.inbox.front());
    end.inbox.pop_front();
    end.inbox_bytes -= parcel.envelope.size() + parcel.body.size();
    if (auto delivery = open_parcel(id, std::move(parcel))) return delivery;
  }
}

std::optional<net::Delivery> SimMessenger::open_parcel(net::PeerId id, Parcel parcel) {
  net::Delivery out;
  out.peer = id;
  if (parcel.closed) {
    out.kind = net::Delivery::Kind::kClosed;
    last_closed_ = peers_.at(id).port.mine().seen;
    last_closed_id_ = id;
    disconnect(id);
    world_.note(id ^ 0xc105ed);
    return out;
  }
  auto& envelope = out.packet.envelope;
  if (!envelope.ParseFromString(parcel.envelope)) throw Failure("an envelope that cannot be read back");
  world_.note((envelope.id() << 8) ^ static_cast<std::uint64_t>(envelope.op_case()) ^ (parcel.body.size() << 32));
  const bool empty = envelope.op_case() == proto::Envelope::OP_NOT_SET && !envelope.has_error() && !envelope.working();
  if (empty) {
    if (envelope.id() != 0)
      (void)send(
          id, net::error_reply(envelope, {Code::kUnsupported, "an operation that this version does not know", {}}, {}));
    return std::nullopt;
  }
  out.packet.body = std::move(parcel.body);
  out.packet.handles = std::move(parcel.handles);
  return out;
}

const net::Identity& SimMessenger::identity(net::PeerId peer) const {
  static const net::Identity kNobody;
  if (peer != 0 && peer == last_closed_id_) return last_closed_;
  const auto found = peers_.find(peer);
  return found == peers_.end() || !found->second.port.link ? kNobody : found->second.port.mine().seen;
}

void SimMessenger::wake() { actor_.woken.store(true); }

void SimMessenger::close_all() {
  while (!peers_.empty()) disconnect(peers_.begin()->first);
  outgoing_.clear();
}

}  // namespace pif::sim
