#include "session/message_io.h"

#include <algorithm>

#include "file/file_state.h"

namespace pif::client {

namespace {
constexpr unsigned kAttemptsMax = 3;
constexpr Duration kRetryPause = std::chrono::milliseconds(5);
}  // namespace

Requests::Requests(FileState& file) : file_(file) { file_.session->add(*this); }

Requests::~Requests() {
  drop_all();
  file_.session->remove(*this);
}

void Requests::add(BulkRequest request) {
  bytes_ += request.bytes;
  ++queued_count_;
  queued_[request.lfs].push_back(std::move(request));
}

Status Requests::start(BulkRequest request) {
  Session& session = *file_.session;
  const proto::NodeInfo& node = file_.parts.nodes[request.lfs];
  net::Packet packet = request.make();
  packet.envelope.set_capability(file_.parts.capability);
  const bool bulk = request.in_order || request.bytes > kSmallBodyBytes;
  if (request.attempts++ == 0) {
    const Duration patience = request.timeout > Duration::zero() ? request.timeout : session.timeout();
    request.deadline = session.clock().now() + patience;
  }
  const Duration left = std::max(request.deadline - session.clock().now(), Duration(1));
  PIF_TRY_VALUE(const net::CallId call, session.start_node(node, std::move(packet), left, bulk));
  Outstanding& used = session.outstanding(node.id());
  used.bytes += request.bytes;
  ++used.requests;
  running_.push_back({call, node.id(), session.peer_of(node.id()), std::move(request)});
  return {};
}

Status Requests::start_allowed() {
  if (file_.session->clock().now() < not_before_) return {};
  for (auto& [lfs, queue] : queued_) {
    const proto::NodeInfo& node = file_.parts.nodes[lfs];
    while (!queue.empty()) {
      PIF_TRY_VALUE(const Link link, file_.session->link(node));
      const Outstanding used = file_.session->outstanding(node.id());
      if (used.bytes > 0 && used.bytes + queue.front().bytes > link.window_bytes) break;
      if (used.requests >= link.window_requests) break;
      BulkRequest request = std::move(queue.front());
      queue.pop_front();
      --queued_count_;
      bytes_ -= request.bytes;
      const std::uint64_t bytes = request.bytes;
      PIF_TRY(start(std::move(request)));
      bytes_ += bytes;
    }
  }
  return {};
}

void Requests::release(const Running& running) {
  Outstanding& used = file_.session->outstanding(running.node);
  used.bytes -= std::min(used.bytes, running.request.bytes);
  used.requests -= std::min<std::uint64_t>(used.requests, 1);
}

// `again`: the request may be repeated, and is put back.
Status Requests::finish(Running& running, bool& again) {
  again = false;
  auto reply = file_.session->caller().wait(running.call);
  release(running);
  if (reply) return running.request.take ? running.request.take(*reply) : Status();
  Error error = std::move(reply.error());
  const proto::NodeInfo& node = file_.parts.nodes[running.request.lfs];
  if (error.code == Code::kRetry && running.request.patient &&
      file_.session->clock().now() < running.request.deadline) {
    again = true;
    not_before_ = file_.session->clock().now() + kRetryPause;
    return {};
  }
  again = running.request.attempts < kAttemptsMax;
  if (again && error.code == Code::kBadCapability) {
    PIF_TRY(file_.renew());
    return {};
  }
  if (again && error.code == Code::kUnavailable && error.node.empty()) {
    file_.session->drop_node(node.id());
    return {};
  }
  const bool silent = error.code == Code::kTimeout && error.node.empty();
  const Duration left = running.request.deadline - file_.session->clock().now();
  if (again && silent && file_.session->found_elsewhere(node, running.peer, left)) return {};
  again = false;
  if (error.node.empty()) error.node = node.name();
  return fail(std::move(error));
}

Status Requests::take_done() {
  Status status;
  for (std::size_t i = 0; i < running_.size() && status;) {
    if (!file_.session->caller().is_done(running_[i].call)) {
      ++i;
      continue;
    }
    Running running = std::move(running_[i]);
    running_[i] = std::move(running_.back());
    running_.pop_back();
    bool again = false;
    status = finish(running, again);
    if (again && status) {
      ++queued_count_;
      queued_[running.request.lfs].push_front(std::move(running.request));
    } else {
      bytes_ -= running.request.bytes;
    }
  }
  return status;
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
  const std::size_t before = running_.size();
  static_cast<void>(keep(take_done()).has_value());
  return running_.size() < before;
}

// Every call has its own deadline and ends by it, so this one only bounds the wait for news.
Time Requests::next_news() const {
  const Time now = file_.session->clock().now();
  return now < not_before_ ? not_before_ : now + file_.session->timeout();
}

Status Requests::pump() {
  const std::size_t before = running_.size() + queued_count_;
  PIF_TRY(step());
  if (idle() || running_.size() + queued_count_ < before) return {};
  const auto& caller = file_.session->caller();
  const bool any =
      std::any_of(running_.begin(), running_.end(), [&](const Running& r) { return caller.is_done(r.call); });
  const bool waits_for_credit = queued_count_ > 0 && file_.session->collect_others(*this);
  if (!any && !waits_for_credit) PIF_TRY(file_.session->caller().pump(next_news()));
  return step();
}

Status Requests::run() {
  do PIF_TRY(pump());
  while (!idle());
  return {};
}

void Requests::drop_all() {
  for (const Running& running : running_) {
    file_.session->caller().forget(running.call);
    release(running);
  }
  running_.clear();
  queued_.clear();
  queued_count_ = 0;
  bytes_ = 0;
}

}  // namespace pif::client
