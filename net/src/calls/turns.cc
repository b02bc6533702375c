#include "pif/net/turns.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/path.h"
#include "pif/net/calls.h"

namespace pif::net {
namespace {

constexpr std::uint64_t kLookBytes = 512u << 10;   // handed out between two looks at what has come: some 100 us
constexpr unsigned kTakenAtOnce = 256;             // in one look; then somebody has his turn, whatever still comes
constexpr std::uint64_t kHandleBytes = 64u << 10;  // what a descriptor counts as: a process has few
constexpr std::size_t kKnownMax = 16384;           // peers; as many as ZeroMQ's may be
constexpr std::size_t kProgramBytesMax = 64;

static_assert(Turns::kPeerBytesMax >= kBodyBytesMax && Turns::kPeerBytesMax < Turns::kBytesMax);

std::uint64_t bytes_of(const Packet& packet) {
  return packet.envelope.ByteSizeLong() + packet.body.size() + packet.handles.size() * kHandleBytes;
}

// Whether nobody misses it if it is not done once its requester is gone.
bool is_read(const proto::Envelope& request) {
  const wire::Operation* operation = wire::find_operation(request.op_case());
  return operation != nullptr &&
         (operation->at_lfs == wire::Right::kRead || operation->at_lfs == wire::Right::kReadOrCreate);
}

bool has_reply(const proto::Envelope& request) {
  const wire::Operation* operation = wire::find_operation(request.op_case());
  return operation == nullptr || operation->reply != proto::Envelope::OP_NOT_SET;
}

}  // namespace

Result<std::optional<Turns::Arrival>> Turns::receive(Time deadline) {
  if (requests_.empty() || cost_ - cost_at_look_ >= kLookBytes)
    PIF_TRY(take_in(requests_.empty() ? deadline : Time::min()));
  if (!has_any()) return std::nullopt;
  return next();
}

Turns::Arrival Turns::next() {
  if (!at_once_.empty()) {
    Arrival out = std::move(at_once_.front());
    at_once_.pop_front();
    return out;
  }
  auto taken = requests_.pop();
  PIF_ASSERT(taken.has_value(), requests_.size());
  PIF_ASSERT(cost_ >= cost_at_look_, cost_, cost_at_look_);
  cost_ += kTurnBytes;
  Arrival out{{}, taken->item.arrived};
  out.delivery.peer = taken->peer;
  out.delivery.packet = std::move(taken->item.packet);
  return out;
}

Status Turns::take_in(Time deadline) {
  if (!at_once_.empty()) return {};
  cost_at_look_ = cost_;
  bool goes_on = true;
  for (unsigned taken = 0; taken < kTakenAtOnce && goes_on && !is_full(); ++taken) {
    PIF_TRY_VALUE(auto delivery, messenger_.receive(has_any() ? Time::min() : deadline));
    if (!delivery) break;
    goes_on = take(std::move(*delivery));
  }
  if (requests_.empty()) requests_.forgive();
  return {};
}

bool Turns::take(Delivery delivery) {
  if (delivery.kind == Delivery::Kind::kClosed) return take_closed(std::move(delivery));
  if (delivery.kind == Delivery::Kind::kPacket && !is_reply(delivery.packet.envelope))
    return take_request(std::move(delivery));
  at_once_.push_back({std::move(delivery), now()});
  return true;
}

// One that nobody is in front of is handed out without a look at what others want.
bool Turns::take_request(Delivery delivery) {
  const std::uint64_t bytes = bytes_of(delivery.packet);
  if (refuse_above_limits(delivery, bytes)) return true;
  PIF_ASSERT(delivery.kind == Delivery::Kind::kPacket, delivery.kind, delivery.peer);
  const bool is_first = !has_any() && !requests_.owes(delivery.peer);
  requests_.push(delivery.peer, {std::move(delivery.packet), now()}, bytes);
  return !is_first;
}

// Whose identity is known until something else is received (messenger.h).
bool Turns::take_closed(Delivery delivery) {
  PIF_ASSERT(delivery.kind == Delivery::Kind::kClosed, delivery.kind, delivery.peer);
  for (Request& request : requests_.drop(delivery.peer)) {
    if (is_read(request.packet.envelope)) continue;
    Arrival& last = at_once_.emplace_back(Arrival{{}, request.arrived});
    last.delivery.peer = delivery.peer;
    last.delivery.packet = std::move(request.packet);
  }
  known_.erase(delivery.peer);
  at_once_.push_back({std::move(delivery), now()});
  return false;
}

bool Turns::refuse_above_limits(const Delivery& delivery, std::uint64_t bytes) {
  const proto::Envelope& request = delivery.packet.envelope;
  const std::size_t count = requests_.peer_size(delivery.peer);
  const std::uint64_t waiting = requests_.peer_bytes(delivery.peer);
  if (count < kPeerRequestsMax && (count == 0 || waiting + bytes <= kPeerBytesMax)) return false;
  if (!has_reply(request)) return false;
  // Best effort: if this cannot be sent, the requester's deadline tells it.
  const Error why{Code::kBusy,
                  fmt::format("{} requests of this connection, of {} bytes, wait here already: it goes past its credit",
                              count, waiting),
                  {}};
  (void)messenger_.send(delivery.peer, error_reply(request, why, node_));
  return true;
}

void Turns::charge(PeerId peer, std::uint64_t bytes) {
  cost_ += bytes;
  requests_.charge(peer, bytes);
  if (const auto known = known_.find(peer); known != known_.end()) known->second.served_bytes += bytes;
}

void Turns::drop(PeerId peer) {
  requests_.drop(peer);
  known_.erase(peer);
}

void Turns::introduce(PeerId peer, std::string_view program, std::uint32_t uid) {
  if (known_.size() >= kKnownMax && !known_.contains(peer)) return;
  Known& known = known_[peer];
  known.program = to_utf8(program.substr(0, kProgramBytesMax));
  known.uid = uid;
}

void Turns::describe(proto::StatsReply& reply) const {
  auto waiting = requests_.waiting();
  std::sort(waiting.begin(), waiting.end(),
            [](const auto& a, const auto& b) { return a.count != b.count ? a.count > b.count : a.peer < b.peer; });
  reply.set_peers_waiting(waiting.size());
  if (waiting.size() > kPeersDescribedMax) waiting.resize(kPeersDescribedMax);
  for (const auto& one : waiting) {
    proto::PeerStats& out = *reply.add_peers();
    out.set_waiting(one.count);
    out.set_waiting_bytes(one.bytes);
    const auto known = known_.find(one.peer);
    if (known == known_.end()) {
      out.set_uid(messenger_.identity(one.peer).uid);
      continue;
    }
    out.set_program(known->second.program);
    out.set_uid(known->second.uid);
    out.set_served_bytes(known->second.served_bytes);
  }
}

}  // namespace pif::net
