#include "pif/daemon/replies.h"

#include <algorithm>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/wire/operations.h"

namespace pif::daemon {
namespace {

constexpr Duration kTimeoutMax = std::chrono::hours(1);
constexpr Duration kTimeoutDefault = std::chrono::seconds(30);

// A result is what the table says that the operation is answered with.
void check_result(int operation, const proto::Envelope& result) {
  const wire::Operation* asked = wire::find_operation(operation);
  PIF_ASSERT(asked != nullptr && result.op_case() == asked->reply, operation, result.op_case());
}

// Whether it is answered when workers or who asked for them do something.
bool is_idle(int operation) {
  using E = proto::Envelope;
  return operation == E::kJobWait || operation == E::kJobMeet || operation == E::kWorkerMeet ||
         operation == E::kWorkerStream;
}

void address(proto::Envelope& reply, std::uint64_t request) {
  reply.set_id(request);
  reply.set_version(kProtocolVersion);
}

}  // namespace

Request request_of(net::Delivery& delivery, Time arrived) {
  PIF_ASSERT(delivery.kind == net::Delivery::Kind::kPacket && delivery.peer != 0, delivery.kind, delivery.peer);
  const std::uint32_t ms = delivery.packet.envelope.timeout_ms();
  const Duration patience = ms == 0 ? kTimeoutDefault : std::min<Duration>(std::chrono::milliseconds(ms), kTimeoutMax);
  return {delivery.peer, std::move(delivery.packet), arrived, arrived + patience, 0};
}

Replies::Replies(net::Messenger& messenger, Fibers& fibers, std::string node)
    : messenger_(messenger), fibers_(fibers), node_(std::move(node)), started_(now()), earlier_(fibers) {
  fibers_.start<&Replies::send_signs>(*this);
}

void Replies::send(net::PeerId peer, net::Packet packet) {
  const std::uint64_t id = packet.envelope.id();
  const auto sent = messenger_.send(peer, std::move(packet));
  if (sent || (sent.error().code != Code::kBusy && sent.error().code != Code::kTooLarge)) return;
  proto::Envelope request;  // an answer that has descriptors, or is long, does not go: the error does
  request.set_id(id);
  (void)messenger_.send(peer, net::error_reply(request, sent.error(), node_));
}

void Replies::count(const Request& request, const Result<net::Packet>& result) {
  const std::uint64_t bytes_in = request.packet.body.size();
  const std::uint64_t bytes_out = result ? result->body.size() : 0;
  stats_.add(request.envelope().op_case(), bytes_in, bytes_out, result ? Code::kOk : result.error().code,
             now() - request.arrived);
  if (turns_ != nullptr) turns_->charge(request.peer, bytes_in + bytes_out);
}

void Replies::answer(const Request& request, Result<net::Packet> result) {
  if (request.token != 0) {
    const auto at = later_.find(request.token);
    if (at == later_.end()) return;
    end(at);
  }
  if (result) check_result(request.envelope().op_case(), result->envelope);
  count(request, result);
  if (!result) return send(request.peer, net::error_reply(request.envelope(), result.error(), node_));
  address(result->envelope, request.envelope().id());
  send(request.peer, std::move(*result));
}

void Replies::send_answer(net::PeerId peer, net::Packet packet, int operation, Time arrived) {
  const proto::Envelope& envelope = packet.envelope;
  if (!envelope.has_error()) check_result(operation, envelope);
  const Code code = envelope.has_error() ? code_from_number(envelope.error().code()) : Code::kOk;
  stats_.add(operation, 0, packet.body.size(), code, now() - arrived);
  send(peer, std::move(packet));
}

void Replies::defer(Request& request) {
  PIF_ASSERT(request.token == 0, request.token);
  request.token = ++last_token_;
  const Time sign = std::min(now() + kSignEvery, request.deadline);
  const proto::Envelope& envelope = request.envelope();
  later_.emplace(request.token, Later{request.peer, envelope.id(), envelope.op_case(), request.deadline, sign});
  if (is_idle(envelope.op_case())) ++idle_;
  PIF_ASSERT(signs_.size() + 1 == later_.size() && idle_ <= later_.size(), signs_.size(), later_.size(), idle_);
  const auto [at, is_new] = signs_.emplace(sign, request.token);
  PIF_ASSERT(is_new, request.token);
  if (at == signs_.begin()) earlier_.notify();
  stats_.set_under_way(later_.size());
}

void Replies::drop_peer(net::PeerId peer) {
  for (auto at = later_.begin(); at != later_.end();) {
    const auto next = std::next(at);
    if (at->second.peer == peer) end(at);
    at = next;
  }
}

void Replies::end(std::unordered_map<ReplyToken, Later>::iterator at) {
  const std::size_t erased = signs_.erase({at->second.next_sign, at->first});
  PIF_ASSERT(erased == 1, at->first);
  if (is_idle(at->second.op)) --idle_;
  later_.erase(at);
  stats_.set_under_way(later_.size());
}

void Replies::send_signs() {
  for (;;) {
    earlier_.wait(signs_.empty() ? kNever : signs_.begin()->first);
    fibers_.settle();  // who answers at this moment comes first
    const Time time = now();
    while (!signs_.empty() && signs_.begin()->first <= time) {
      const auto at = later_.find(signs_.begin()->second);
      PIF_ASSERT(at != later_.end() && at->second.next_sign == signs_.begin()->first, signs_.begin()->second);
      if (at->second.deadline <= time)
        end(at);
      else
        send_sign(at->first, at->second, time);
    }
  }
}

void Replies::send_sign(ReplyToken token, Later& later, Time now) {
  PIF_ASSERT(now < later.deadline, token);  // so its next time is later, and the loop of signs ends
  proto::Envelope request;
  request.set_id(later.id);
  net::Packet sign = net::reply_to(request);
  sign.envelope.set_working(true);
  send(later.peer, std::move(sign));
  signs_.erase({later.next_sign, token});
  later.next_sign = std::min(now + kSignEvery, later.deadline);
  signs_.emplace(later.next_sign, token);
}

std::uint64_t Replies::uptime_ms() const {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now() - started_).count());
}

proto::StatsReply Replies::stats() const {
  proto::StatsReply out;
  stats_.describe(out);
  out.set_node(node_);
  out.set_uptime_ms(uptime_ms());
  return out;
}

}  // namespace pif::daemon
