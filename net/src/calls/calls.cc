#include "pif/net/calls.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/wire/convert.h"

namespace pif::net {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Time after(Time now, Duration wait) { return wait >= kNever - now ? kNever : now + wait; }

std::uint32_t wire_ms(Duration timeout) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 1, std::numeric_limits<std::uint32_t>::max()));
}

// What a peer says can be wrong: an answer to another request than this one.
std::optional<std::string> wrong_answer(int asked, const proto::Envelope& reply) {
  const wire::Operation* operation = wire::find_operation(asked);
  if (operation == nullptr || operation->reply == reply.op_case()) return std::nullopt;
  return fmt::format("{} was answered with something else than {} (message {})", operation->name, operation->reply_name,
                     static_cast<int>(reply.op_case()));
}

}  // namespace

bool is_reply(const proto::Envelope& envelope) {
  return envelope.has_error() || envelope.working() || wire::is_reply_case(envelope.op_case());
}

CallId Calls::start(PeerId peer, Packet request, Duration timeout, std::string peer_name, OnReply on_reply) {
  CallId id = request.envelope.id();
  if (id == 0 || calls_.contains(id)) id = next_id_++;
  request.envelope.set_id(id);
  request.envelope.set_version(kProtocolVersion);
  request.envelope.set_timeout_ms(wire_ms(timeout));

  const Time now = messenger_.clock().now();
  Call call{
      peer, std::move(peer_name), now, timeout, after(now, timeout), after(now, kSilenceMax), std::move(on_reply)};
  call.operation = request.envelope.op_case();
  call.bytes_out = request.body.size();
  call.due = std::min(call.deadline, call.patience);
  due_.emplace(call.due, id);
  auto& known = peers_[peer];
  ++known.under_way;
  if (timeout <= Duration::zero()) {
    // Nobody waits for the answer: the peer shall not do what the requester takes for not done.
    unsent_.emplace_back(
        id, Error{Code::kTimeout, fmt::format("the time for it was up before {} could be asked", call.peer_name), {}});
  } else if (auto sent = messenger_.send(peer, std::move(request)); !sent) {
    auto error = std::move(sent.error());
    error.text = fmt::format("cannot send to {}: {}", call.peer_name, error.text);
    unsent_.emplace_back(id, std::move(error));
  }
  PIF_ASSERT(known.under_way > 0 && due_.size() == calls_.size() + 1, peer, due_.size(), calls_.size());
  calls_.emplace(id, std::move(call));
  return id;
}

bool Calls::offer(Delivery& delivery) {
  if (delivery.kind == Delivery::Kind::kClosed) {
    fail_peer(delivery.peer);
    return false;
  }
  if (delivery.kind != Delivery::Kind::kPacket) return false;
  if (const auto known = peers_.find(delivery.peer); known != peers_.end())
    known->second.heard = now_ = messenger_.clock().now();
  const auto& envelope = delivery.packet.envelope;
  if (!is_reply(envelope)) return false;
  const auto found = calls_.find(envelope.id());
  if (found == calls_.end() || found->second.peer != delivery.peer) return true;  // too late, or never asked
  if (envelope.working() && !envelope.has_error()) return true;                   // `heard` is renewed above
  if (envelope.has_error()) {
    auto error = wire::error_of(envelope.error());
    if (error.node.empty()) error.node = found->second.peer_name;
    finish(found->first, fail(std::move(error)));
  } else if (const auto wrong = wrong_answer(found->second.operation, envelope)) {
    finish(found->first,
           fail(Code::kInternal, fmt::format("{}: does it run another version?", *wrong), found->second.peer_name));
  } else {
    finish(found->first, std::move(delivery.packet));
  }
  return true;
}

void Calls::expire() {
  const Time now = now_ = messenger_.clock().now();
  fail_unsent();
  while (!due_.empty() && due_.begin()->first <= now) {
    const CallId id = due_.begin()->second;
    Call& call = calls_.at(id);
    PIF_ASSERT(call.due == due_.begin()->first, id);
    call.patience = std::max(call.patience, after(peers_.at(call.peer).heard, kSilenceMax));
    const Time due = std::min(call.deadline, call.patience);
    if (now - due > kCameLate && due <= now) {
      call.deadline = std::max(call.deadline, now + kCameLate);
      call.patience = std::max(call.patience, now + kCameLate);
    } else if (now >= call.deadline) {
      finish(id, fail(Code::kTimeout,
                      fmt::format("{} did not answer within {:.3g} s", call.peer_name, seconds(call.timeout))));
      continue;
    } else if (now >= call.patience) {
      finish(id, fail(Code::kTimeout,
                      fmt::format("{} has said nothing for {:.3g} s: it is stopped, overloaded or cannot be "
                                  "reached",
                                  call.peer_name, seconds(kSilenceMax))));
      continue;
    }
    due_.erase(due_.begin());
    PIF_ASSERT(std::min(call.deadline, call.patience) > now, id);  // so this loop ends
    call.due = std::min(call.deadline, call.patience);
    due_.emplace(call.due, id);
  }
}

Time Calls::next_deadline() const {
  if (!unsent_.empty()) return Time{};
  return due_.empty() ? kNever : due_.begin()->first;
}

void Calls::forget(CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const Call& call = found->second;
  const std::size_t erased = due_.erase({call.due, id});
  const auto known = peers_.find(call.peer);
  PIF_ASSERT(erased == 1 && known != peers_.end() && known->second.under_way > 0, id, call.peer, erased);
  if (--known->second.under_way == 0) peers_.erase(known);
  calls_.erase(found);
  PIF_ASSERT(due_.size() == calls_.size(), id, due_.size(), calls_.size());
}

void Calls::finish(CallId id, Result<Packet> result) {
  Call& call = calls_.at(id);
  if (stats_ != nullptr) {
    const Code code = result ? Code::kOk : result.error().code;
    stats_->add(call.operation, result ? result->body.size() : 0, call.bytes_out, code, now_ - call.started);
  }
  auto on_reply = std::move(call.on_reply);
  PIF_ASSERT(on_reply != nullptr, id, call.operation);
  forget(id);  // first: on_reply may start the next call
  on_reply(std::move(result));
}

void Calls::fail_unsent() {
  auto unsent = std::exchange(unsent_, {});
  for (auto& [id, error] : unsent)
    if (calls_.contains(id)) finish(id, fail(std::move(error)));
}

void Calls::fail_peer(PeerId peer) {
  if (!peers_.contains(peer)) return;
  now_ = messenger_.clock().now();
  std::vector<CallId> lost;
  for (const auto& [id, call] : calls_)
    if (call.peer == peer) lost.push_back(id);
  std::sort(lost.begin(), lost.end());
  for (const CallId id : lost) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) continue;  // forgotten by the on_reply of another
    finish(id, fail(Code::kUnavailable, fmt::format("{} closed the connection", found->second.peer_name)));
  }
}

Packet reply_to(const proto::Envelope& request) {
  Packet reply;
  reply.envelope.set_version(kProtocolVersion);
  reply.envelope.set_id(request.id());
  return reply;
}

Packet error_reply(const proto::Envelope& request, const Error& error, std::string_view node) {
  Packet reply = reply_to(request);
  *reply.envelope.mutable_error() = wire::proto_of(error, node);
  return reply;
}

}  // namespace pif::net
