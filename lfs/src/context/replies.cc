#include "context/replies.h"

#include <algorithm>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/wire/operations.h"

namespace pif::lfs {
namespace {

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

void Replies::send(net::PeerId peer, net::Packet packet) {
  const std::uint64_t id = packet.envelope.id();
  const auto sent = messenger_.send(peer, std::move(packet));
  if (sent || sent.error().code != Code::kBusy) return;
  proto::Envelope request;  // its answer had descriptors, and does not go: the error has none
  request.set_id(id);
  (void)messenger_.send(peer, net::error_reply(request, sent.error(), node_));
}

void Replies::count(net::PeerId peer, int operation, std::uint64_t bytes_in, const Result<net::Packet>& result,
                    Time arrived) {
  const std::uint64_t bytes_out = result ? result->body.size() : 0;
  stats_.add(operation, bytes_in, bytes_out, result ? Code::kOk : result.error().code, now() - arrived);
  if (turns_ != nullptr) turns_->charge(peer, bytes_in + bytes_out);
}

void Replies::answer(const Request& request, Result<net::Packet> result) {
  if (result) check_result(request.envelope().op_case(), result->envelope);
  count(request.peer, request.envelope().op_case(), request.packet.body.size(), result, request.arrived);
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

ReplyToken Replies::defer(const Request& request) {
  const ReplyToken token = ++last_token_;
  const Time sign = std::min(now() + kSignEvery, request.deadline);
  const proto::Envelope& envelope = request.envelope();
  later_.emplace(token, Later{request.peer, envelope.id(), envelope.op_case(), request.packet.body.size(),
                              request.arrived, request.deadline, sign});
  if (is_idle(envelope.op_case())) ++idle_;
  PIF_ASSERT(signs_.size() + 1 == later_.size() && idle_ <= later_.size(), signs_.size(), later_.size(), idle_);
  signs_.emplace(sign, token);
  stats_.set_under_way(later_.size());
  return token;
}

void Replies::answer(ReplyToken token, Status status) {
  if (!status) return answer(token, Result<net::Packet>(fail(std::move(status.error()))));
  net::Packet done;
  done.envelope.mutable_done();
  answer(token, Result<net::Packet>(std::move(done)));
}

void Replies::answer(ReplyToken token, Result<net::Packet> result) {
  const auto at = later_.find(token);
  if (at == later_.end()) return;  // its deadline passed, or its peer is gone
  const Later later = at->second;
  if (result) check_result(later.op, result->envelope);
  end(at);
  count(later.peer, later.op, later.bytes_in, result, later.arrived);
  proto::Envelope request;
  request.set_id(later.id);
  net::Packet packet = result ? std::move(*result) : net::error_reply(request, result.error(), node_);
  address(packet.envelope, later.id);
  send(later.peer, std::move(packet));
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

void Replies::tick(Time now) {
  while (!signs_.empty() && signs_.begin()->first <= now) {
    const ReplyToken token = signs_.begin()->second;
    const auto at = later_.find(token);
    PIF_ASSERT(at != later_.end(), token);
    Later& later = at->second;
    if (later.deadline <= now) {
      end(at);
      continue;
    }
    signs_.erase(signs_.begin());
    proto::Envelope request;
    request.set_id(later.id);
    net::Packet sign = net::reply_to(request);
    sign.envelope.set_working(true);
    send(later.peer, std::move(sign));
    later.next_sign = std::min(now + kSignEvery, later.deadline);
    signs_.emplace(later.next_sign, token);
  }
}

Time Replies::next_deadline() const { return signs_.empty() ? kNever : signs_.begin()->first; }

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

}  // namespace pif::lfs
