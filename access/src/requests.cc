#include "pif/access/requests.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/wire/views.h"

namespace pif::access {

namespace {

constexpr unsigned kAttemptsMax = 3;
constexpr Duration kRetryPause = std::chrono::milliseconds(5);

}  // namespace

Requests::Requests(LfsLinks& links, Grant& grant) : links_(links), grant_(grant) { links_.add(*this); }

Requests::~Requests() {
  drop_all();
  links_.remove(*this);
}

void Requests::add(BulkRequest request) {
  PIF_ASSERT(request.lfs < grant_.parts().nodes.size(), request.lfs, grant_.parts().nodes.size());
  PIF_ASSERT(request.make != nullptr, request.lfs);
  bytes_ += request.bytes;
  ++queued_count_;
  queued_[request.lfs].push_back(std::move(request));
}

// ---- sending -------------------------------------------------------------------------------------------------------

void Requests::start(BulkRequest request, const Link& link, net::PeerId over) {
  net::Packet packet = request.make();
  packet.envelope.set_capability(grant_.capability());
  if (request.id == 0) request.credential = links_.credential();
  packet.envelope.set_credential(request.credential);
  packet.envelope.set_id(request.id != 0 ? request.id : links_.take_id());
  if (request.attempts++ == 0) {
    const Duration patience = request.timeout > Duration::zero() ? request.timeout : links_.timeout();
    request.deadline = links_.clock().now() + patience;
  }
  const Duration left = std::max(request.deadline - links_.clock().now(), Duration(1));
  const Number number = next_number_++;
  const net::CallId call = links_.calls().start(
      over, std::move(packet), left, link.name,
      [this, number](Result<net::Packet> reply) { arrived_.emplace_back(number, std::move(reply)); });
  Outstanding& used = links_.outstanding(link.node);
  used.bytes += request.bytes;
  ++used.requests;
  running_.emplace(number, Running{call, link.node, link.peer, std::move(request)});
}

BulkRequest Requests::take_first(std::deque<BulkRequest>& queue) {
  BulkRequest request = std::move(queue.front());
  queue.pop_front();
  PIF_ASSERT(queued_count_ > 0 && bytes_ >= request.bytes, queued_count_, bytes_, request.bytes);
  --queued_count_;
  return request;
}

// The first of the queue cannot be sent. Whether that is a failure of its LFS, its caller notes.
Status Requests::refuse_first(std::deque<BulkRequest>& queue, Error error) {
  const BulkRequest request = take_first(queue);
  bytes_ -= request.bytes;
  PIF_ASSERT(request.refused != nullptr, request.lfs);
  ++refused_count_;
  return request.refused(std::move(error));
}

// Its LFS cannot be reached.
Status Requests::cannot_reach(std::deque<BulkRequest>& queue, Error error) {
  BulkRequest& first = queue.front();
  if (is_lost(error.code)) links_.note_away(grant_.parts().nodes[first.lfs].id());
  return first.refused ? refuse_first(queue, std::move(error)) : fail(std::move(error));
}

// Nothing: its LFS is asked.
std::optional<Error> Requests::why_not_asked(const BulkRequest& request) {
  if (!request.replaceable) return std::nullopt;
  const FileParts& parts = grant_.parts();
  const proto::NodeInfo& node = parts.nodes[request.lfs];
  if (parts.is_absent(request.lfs))
    return Error{Code::kUnavailable, fmt::format("it is {}", wire::view_state_name(node.view_state())), node.name()};
  if (!links_.was_away(node.id())) return std::nullopt;
  links_.note_passed_over();
  return Error{Code::kUnavailable, "it did not answer a moment ago", node.name()};
}

Result<bool> Requests::start_first(std::deque<BulkRequest>& queue) {
  BulkRequest& first = queue.front();
  const proto::NodeInfo& node = grant_.parts().nodes[first.lfs];
  if (auto why = why_not_asked(first)) {
    PIF_TRY(refuse_first(queue, std::move(*why)));
    return true;
  }
  auto reached = links_.link(node);
  if (!reached) {
    PIF_TRY(cannot_reach(queue, std::move(reached.error())));
    return true;
  }
  const Link* const found = *reached;
  if (found == nullptr) return false;
  const Link link = *found;
  const Outstanding used = links_.outstanding(node.id());
  if (used.bytes > 0 && used.bytes + first.bytes > link.window_bytes) return false;
  if (used.requests >= link.window_requests) return false;
  net::PeerId over = link.peer;
  if (first.in_order || first.bytes > kSmallBodyBytes) {
    auto reached_bulk = links_.link(node, true);
    if (!reached_bulk) {
      PIF_TRY(cannot_reach(queue, std::move(reached_bulk.error())));
      return true;
    }
    const Link* const bulk = *reached_bulk;
    if (bulk == nullptr) return false;
    over = bulk->peer;
  }
  BulkRequest request = take_first(queue);
  bool is_wanted = true;
  if (request.admit) {
    auto admitted = request.admit(link);
    if (!admitted) bytes_ -= request.bytes;
    PIF_TRY_VALUE(is_wanted, std::move(admitted));
  }
  if (is_wanted)
    start(std::move(request), link, over);
  else
    bytes_ -= request.bytes;
  return true;
}

Status Requests::start_allowed() {
  if (queued_count_ == 0 || links_.clock().now() < not_before_) return {};
  // One that is refused may add others, also for LFSs that have had their turn.
  for (bool again = true; again;) {
    const std::uint64_t refused_before = refused_count_;
    for (auto& [lfs, queue] : queued_) {
      for (bool any = true; any && !queue.empty();) {
        PIF_TRY_VALUE(any, start_first(queue));
      }
    }
    again = refused_count_ != refused_before && queued_count_ > 0;
  }
  return {};
}

// ---- answers -------------------------------------------------------------------------------------------------------

void Requests::release(const Running& running) {
  Outstanding& used = links_.outstanding(running.node);
  PIF_ASSERT(used.requests > 0 && used.bytes >= running.request.bytes, used.requests, used.bytes,
             running.request.bytes);
  used.bytes -= running.request.bytes;
  --used.requests;
}

// `again`: the request may be repeated, and is put back.
Status Requests::finish(Running& running, Result<net::Packet> reply, bool& again) {
  again = false;
  release(running);
  if (reply) {
    links_.note_there(running.node);
    return running.request.take ? running.request.take(*reply) : Status();
  }
  Error error = std::move(reply.error());
  const proto::NodeInfo& node = grant_.parts().nodes[running.request.lfs];
  const Time now = links_.clock().now();
  if (error.code == Code::kRetry && running.request.patient && now < running.request.deadline) {
    again = true;
    not_before_ = now + kRetryPause;
    return {};
  }
  // It may have been done: the LFS recognises it by session and id.
  if (is_lost(error.code) && error.node.empty()) running.request.id = running.call;
  again = running.request.attempts < kAttemptsMax;
  if (again && error.code == Code::kBadCapability) return grant_.renew();
  if (again && error.code == Code::kUnavailable && error.node.empty()) {
    links_.drop(node.id(), running.peer);
    return {};
  }
  const bool silent = error.code == Code::kTimeout && error.node.empty();
  if (again && silent && links_.found_elsewhere(node, running.peer, running.request.deadline - now)) return {};
  again = false;
  if (error.node.empty()) {
    if (is_lost(error.code)) links_.note_away(node.id());
    error.node = node.name();
  }
  return fail_or_refuse(running, std::move(error));
}

Status Requests::fail_or_refuse(Running& running, Error error) {
  if (!running.request.refused) return fail(std::move(error));
  return running.request.refused(std::move(error));
}

Status Requests::take_one(Number number, Result<net::Packet> reply) {
  const auto found = running_.find(number);
  PIF_ASSERT(found != running_.end(), number, running_.size());
  Running running = std::move(found->second);
  running_.erase(found);
  bool again = false;
  auto status = finish(running, std::move(reply), again);
  if (again && status) {
    ++queued_count_;
    queued_[running.request.lfs].push_front(std::move(running.request));
  } else {
    PIF_ASSERT(bytes_ >= running.request.bytes, bytes_, running.request.bytes);
    bytes_ -= running.request.bytes;
  }
  return status;
}

// More may arrive while an answer is taken, for that can renew a right.
Status Requests::take_done() {
  while (!arrived_.empty()) {
    auto arrived = std::exchange(arrived_, {});
    for (auto& [number, reply] : arrived) PIF_TRY(take_one(number, std::move(reply)));
  }
  return {};
}

Status Requests::keep(Status status) {
  if (status) return status;
  drop_all();
  failed_ = status;
  return status;
}

Status Requests::step() {
  if (!failed_) return failed_;
  PIF_TRY(keep(take_done()));
  return keep(start_allowed());
}

bool Requests::collect() {
  const bool any = has_news();
  static_cast<void>(keep(take_done()).has_value());
  return any;
}

bool Requests::collect_for_credit() { return queued_count_ > 0 && links_.collect_others(*this); }

Time Requests::next_try() const {
  return queued_count_ > 0 && links_.clock().now() < not_before_ ? not_before_ : kNever;
}

void Requests::drop_all() {
  for (const auto& [number, running] : running_) {
    links_.calls().forget(running.call);
    release(running);
  }
  running_.clear();
  arrived_.clear();
  queued_.clear();
  queued_count_ = 0;
  bytes_ = 0;
}

}  // namespace pif::access
