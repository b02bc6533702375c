#include "replies.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::lfs {
namespace {

constexpr Duration kSignEvery = std::chrono::seconds(1);

}  // namespace

std::string op_name(int op) {
  using E = proto::Envelope;
  switch (op) {
    case E::kHello: return "hello";
    case E::kCounters: return "counters";
    case E::kAttach: return "attach";
    case E::kRead: return "read";
    case E::kWrite: return "write";
    case E::kSeal: return "seal";
    case E::kOverwrite: return "overwrite";
    case E::kReadBytes: return "read_bytes";
    case E::kOffsets: return "offsets";
    case E::kLength: return "length";
    case E::kReserve: return "reserve";
    case E::kAppendRows: return "append_rows";
    case E::kAppendDone: return "append_done";
    case E::kSettle: return "settle";
    case E::kListComponents: return "list_components";
    case E::kCheckComponent: return "check_component";
    case E::kFlush: return "flush";
    default: return fmt::format("op{}", op);
  }
}

void Replies::send(net::PeerId peer, net::Packet packet) { (void)messenger_.send(peer, std::move(packet)); }

void Replies::count(int op, Time arrived, std::uint64_t bytes, bool ok) {
  Count& c = counts_[op];
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now() - arrived).count();
  const auto took = static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0));
  ++c.count;
  c.bytes += bytes;
  c.errors += ok ? 0 : 1;
  c.total_us += took;
  c.max_us = std::max(c.max_us, took);
}

void Replies::answer(const Request& request, Result<net::Packet> result) {
  const auto bytes = request.packet.body.size() + (result ? result->body.size() : 0);
  count(request.envelope().op_case(), request.arrived, bytes, result.has_value());
  send(request.peer, result ? std::move(*result) : net::error_reply(request.envelope(), result.error(), node_));
}

ReplyToken Replies::defer(const Request& request) {
  const ReplyToken token = ++last_token_;
  const Time sign = std::min(now() + kSignEvery, request.deadline);
  later_.emplace(token, Later{request.peer, request.envelope().id(), request.envelope().op_case(), request.arrived,
                              request.deadline, sign});
  signs_.emplace(sign, token);
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
  end(at);
  count(later.op, later.arrived, result ? result->body.size() : 0, result.has_value());
  proto::Envelope request;
  request.set_id(later.id);
  net::Packet packet = result ? std::move(*result) : net::error_reply(request, result.error(), node_);
  const net::Packet shape = net::reply_to(request);
  packet.envelope.set_id(shape.envelope.id());
  packet.envelope.set_version(shape.envelope.version());
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
  signs_.erase({at->second.next_sign, at->first});
  later_.erase(at);
}

void Replies::tick(Time now) {
  while (!signs_.empty() && signs_.begin()->first <= now) {
    const ReplyToken token = signs_.begin()->second;
    const auto at = later_.find(token);
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

proto::CountersReply Replies::counters() const {
  proto::CountersReply out;
  for (const auto& [op, c] : counts_) {
    auto* counter = out.add_counters();
    counter->set_name("op." + op_name(op));
    counter->set_count(c.count);
    counter->set_bytes(c.bytes);
    counter->set_errors(c.errors);
    counter->set_total_us(c.total_us);
    counter->set_max_us(c.max_us);
  }
  const auto uptime = std::chrono::duration_cast<std::chrono::milliseconds>(now() - started_).count();
  out.set_uptime_ms(static_cast<std::uint64_t>(uptime));
  return out;
}

}  // namespace pif::lfs
