#include "pif/net/calls.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "pif/base/limits.h"
#include "pif/base/path.h"

namespace pif::net {
namespace {

using Op = proto::Envelope;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Time after(Time now, Duration wait) { return wait >= kNever - now ? kNever : now + wait; }

std::uint32_t wire_ms(Duration timeout) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 1, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

bool is_reply(const proto::Envelope& envelope) {
  if (envelope.has_error() || envelope.working()) return true;
  switch (envelope.op_case()) {
    case Op::kHelloReply:
    case Op::kCountersReply:
    case Op::kStatsReply:
    case Op::kDone:
    case Op::kStatReply:
    case Op::kListReply:
    case Op::kCreateReply:
    case Op::kOpenReply:
    case Op::kRemoveReply:
    case Op::kNodesReply:
    case Op::kHeartbeatReply:
    case Op::kFileStatesReply:
    case Op::kListFilesReply:
    case Op::kRenewReply:
    case Op::kAttachReply:
    case Op::kReadReply:
    case Op::kSealReply:
    case Op::kLengthReply:
    case Op::kReserveReply:
    case Op::kSettleReply:
    case Op::kListComponentsReply:
    case Op::kCheckComponentReply:
    case Op::kSpawnReply:
    case Op::kJobWaitReply:
    case Op::kWorkerStartReply:
    case Op::kWorkerMeetReply: return true;
    default: return false;
  }
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
    auto error = error_of(envelope.error());
    if (error.node.empty()) error.node = found->second.peer_name;
    finish(found->first, fail(std::move(error)));
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
  due_.erase({call.due, id});
  if (const auto known = peers_.find(call.peer); --known->second.under_way == 0) peers_.erase(known);
  calls_.erase(found);
}

void Calls::finish(CallId id, Result<Packet> result) {
  Call& call = calls_.at(id);
  if (stats_ != nullptr) {
    const Code code = result ? Code::kOk : result.error().code;
    stats_->add(call.operation, result ? result->body.size() : 0, call.bytes_out, code, now_ - call.started);
  }
  auto on_reply = std::move(call.on_reply);
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
  *reply.envelope.mutable_error() = proto_of(error, node);
  return reply;
}

Error error_of(const proto::Error& error) { return {code_from_number(error.code()), error.text(), error.node()}; }

proto::Error proto_of(const Error& error, std::string_view node) {
  proto::Error out;
  out.set_code(static_cast<std::uint32_t>(error.code));
  out.set_text(to_utf8(error.text));
  out.set_node(error.node.empty() ? std::string(node) : error.node);
  return out;
}

}  // namespace pif::net
