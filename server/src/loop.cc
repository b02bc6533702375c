#include "loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/net/calls.h"
#include "pif/wire/views.h"

namespace pif::server {
namespace {

constexpr std::size_t kDeliveriesPerTurn = 512;
constexpr std::size_t kWeightPerTurn = 4096;  // entries changed or shown
constexpr std::size_t kEntryBytes = 4096;     // what one of them counts as (net/turns.h)
constexpr std::size_t kJobStep = 1000;        // entries
constexpr std::size_t kPruneStep = 1000;      // stored answers looked at in a tick
constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kPrunePeriod = std::chrono::hours(1);  // from the end of the table to its begin
constexpr std::string_view kNode = "server";

// Rows of the table, of what is answered later.
constexpr const wire::Operation& kNodesOperation = wire::OperationOf<proto::Nodes>::kRow;
constexpr const wire::Operation& kReleaseOperation = wire::OperationOf<proto::Release>::kRow;
constexpr const wire::Operation& kAwaitOperation = wire::OperationOf<proto::AwaitRounds>::kRow;
constexpr const wire::Operation& kRemoveOperation = wire::OperationOf<proto::Remove>::kRow;

bool is_recorded(const wire::Operation& operation) { return operation.again == wire::Again::kDeduplicated; }
bool needs_session(const wire::Operation& operation) {
  return operation.at_server == wire::Right::kSession || operation.at_server == wire::Right::kOwner;
}

}  // namespace

Loop::Loop(ServerContext& context) : context_(context) {
  for (const auto bind : {bind_reading, bind_names, bind_removing, bind_lifecycle, bind_sharing, bind_parallel_open,
                          bind_opening, bind_admission, bind_rescue, bind_views, bind_lost_files})
    bind(operations_);
  operations_.start();
}

Status Loop::serve(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    auto arrival = context_.turns.receive(next_deadline());
    if (!arrival && arrival.error().code == Code::kCancelled) return {};
    if (!arrival) return fail(std::move(arrival.error()));
    PIF_TRY(turn(std::move(*arrival)));
  }
  store_heard();
  return {};
}

// A stop stores what LFSs have said since the last transaction, too: a copy of their roots that is made next is
// known by it.
void Loop::store_heard() {
  if (!may_change() || !context_.registry.has_unstored()) return;
  if (auto stored = context_.registry.store_all(); !stored) context_.rows.break_with(std::move(stored.error()));
  finish_turn();
}

Time Loop::next_deadline() const {
  if (!context_.jobs.empty() && may_change()) return Time::min();
  Time next =
      std::min({context_.outbox.next_deadline(), context_.parking.next_deadline(), context_.groups.next_deadline()});
  if (may_change()) next = std::min(next, tick_);
  if (context_.standing == Standing::kGathering) next = std::min(next, context_.started + context_.config.gather_max);
  if (context_.standing == Standing::kAdmitting)
    next = std::min(next, context_.admitting_since + context_.config.gather_max);
  if (is_held()) next = std::min(next, context_.held.until);
  for (const NodesWaiter& waiter : context_.waiters) next = std::min({next, waiter.deadline, waiter.next_sign});
  return next;
}

// Everything that is there already belongs to the turn, within bounds; what comes first is done first.
Status Loop::turn(std::optional<net::Turns::Arrival> first) {
  context_.now = context_.clock.now();
  context_.wall = context_.clock.wall_seconds();
  context_.weight = 0;
  PIF_ASSERT(replies_.empty() && !job_stepped_, replies_.size());
  PIF_ASSERT(!context_.rows.writing() && !context_.rows.is_broken(), context_.rows.writes());
  if (first) take(*first);
  for (std::size_t count = 1; count < kDeliveriesPerTurn && context_.weight < kWeightPerTurn; ++count) {
    auto more = context_.turns.receive(Time::min());
    if (!more && more.error().code == Code::kCancelled) break;
    if (!more) return fail(std::move(more.error()));
    if (!*more) break;
    take(**more);
  }
  run_timers();
  answer_groups();
  finish_turn();
  return {};
}

void Loop::take(net::Turns::Arrival& arrival) {
  net::Delivery& delivery = arrival.delivery;
  if (delivery.kind == net::Delivery::Kind::kWake) return;
  if (delivery.kind == net::Delivery::Kind::kClosed) {
    if (Session* session = context_.sessions.closed(delivery.peer, context_.now)) end_session(context_, *session);
    std::erase_if(context_.waiters, [&](const NodesWaiter& waiter) { return waiter.peer == delivery.peer; });
    context_.outbox.offer(delivery);
    context_.parking.drop(delivery.peer);
    if (context_.held.by == delivery.peer) context_.held = {};
    return;
  }
  if (context_.outbox.offer(delivery) || net::is_reply(delivery.packet.envelope)) return;
  const std::size_t weight = context_.weight;
  const net::PeerId peer = delivery.peer;
  handle(delivery, arrival.arrived);
  context_.turns.charge(peer, (context_.weight - weight) * kEntryBytes);
}

bool Loop::find_session(net::PeerId peer, const proto::Envelope& request, const wire::Operation& operation,
                        Session*& session) {
  const net::Identity& identity = context_.world.messenger.identity(peer);
  auto found = context_.sessions.of(peer, request.credential(), identity, context_.now, context_.wall);
  if (!found) {
    reply_error(peer, request, found.error(), &operation);
    return false;
  }
  session = *found;
  PIF_ASSERT(session != nullptr && !session->has_ended(), operation.request);
  if (!is_recorded(operation)) return true;
  if (session->running.contains(request.id())) {  // asked again, over a new connection: answered there
    for (RemoveJob& job : context_.jobs) {
      if (job.session == session->id && job.request.id() == request.id()) job.peer = peer;
    }
    return false;
  }
  const Answer* answer = session->answer_to(request.id());
  if (answer == nullptr) return true;
  net::Packet packet;
  if (packet.envelope.ParseFromString(answer->reply)) push(peer, std::move(packet), &operation, arrived_);
  return false;
}

Status Loop::check_right(wire::Right right, const proto::Envelope& request, const Session* session) const {
  PIF_ASSERT(right != wire::Right::kNone && (right != wire::Right::kOwner || session != nullptr), right);
  if (right == wire::Right::kManage) return require_manager(context_, request);
  return right == wire::Right::kOwner ? require_owner(session->who) : Status();
}

bool Loop::holds_up(net::Delivery& delivery, const wire::Operation& operation, unsigned when) {
  const unsigned now = (is_early(context_.standing) ? kWhileGathering : 0u) |
                       (context_.standing == Standing::kBehind ? kWhileBehind : 0u) | (is_held() ? kWhileHeld : 0u);
  if ((now & ~when) == 0) return false;
  const net::PeerId peer = delivery.peer;
  if (context_.standing == Standing::kBehind && (when & kWhileBehind) == 0) {
    reply_error(peer, delivery.packet.envelope, {Code::kStaleServer, context_.behind, {}}, &operation);
    return true;
  }
  if (context_.parking.add(delivery, context_.now)) return true;
  reply_error(peer, delivery.packet.envelope, {Code::kBusy, "too many requests wait for the server to go on", {}},
              &operation);
  return true;
}

void Loop::handle(net::Delivery& delivery, Time arrived) {
  const net::PeerId peer = delivery.peer;
  arrived_ = arrived;
  const proto::Envelope& request = delivery.packet.envelope;
  if (request.version() != kProtocolVersion) {
    reply_error(peer, request,
                {Code::kVersion,
                 fmt::format("this server speaks protocol version {}, not {}", kProtocolVersion, request.version()),
                 {}},
                nullptr);
    return;
  }
  const int op = request.op_case();
  const Handler* handler = operations_.find(op);
  if (handler == nullptr) {
    reply_error(peer, request, {Code::kUnsupported, fmt::format("the PIF Server has no operation {}", op), {}},
                nullptr);
    return;
  }
  PIF_ASSERT(wire::find_operation(op) != nullptr, op);
  const wire::Operation& operation = *wire::find_operation(op);
  if (holds_up(delivery, operation, handler->when)) return;
  Session* session = nullptr;
  if (needs_session(operation) && !find_session(peer, request, operation, session)) return;
  if (auto allowed = check_right(operation.at_server, request, session); !allowed)
    return reply_error(peer, request, allowed.error(), &operation);
  net::Packet reply = net::reply_to(request);
  Call call{peer, request, session, reply.envelope, arrived_};
  const std::uint64_t before = context_.rows.writes();
  Status done = handler->run(context_, call);
  const bool wrote = context_.rows.writes() != before;
  PIF_ASSERT(!call.deferred || (done && !wrote), op);  // what is answered later does nothing yet
  if (!done) {
    // A handler checks first and writes last; one that failed in between has left half of something.
    if (wrote) context_.rows.break_with(done.error());
    reply = net::error_reply(request, done.error(), kNode);
  }
  if (done && call.deferred) return;
  PIF_ASSERT(session != nullptr || !is_recorded(operation), op);
  if (is_recorded(operation)) context_.sessions.remember(*session, request.id(), reply.envelope, wrote);
  push(peer, std::move(reply), &operation, arrived_);
}

void Loop::push(net::PeerId peer, net::Packet packet, const wire::Operation* operation, Time arrived) {
  replies_.push_back(
      {peer, std::move(packet), operation, arrived, context_.rows.writing() || context_.rows.is_broken()});
}

void Loop::reply_error(net::PeerId peer, const proto::Envelope& request, const Error& error,
                       const wire::Operation* operation) {
  push(peer, net::error_reply(request, error, kNode), operation, arrived_);
}

// Gathering, or the time without commits, may be over: what has waited is handled.
void Loop::end_waiting() {
  if (is_held() && context_.now >= context_.held.until) {
    spdlog::warn("the time for which commits were held is over");
    context_.held = {};
  }
  if (is_held()) return;
  end_gathering(context_);
  end_admitting(context_);
  if (is_early(context_.standing)) return;
  for (net::Delivery& delivery : context_.parking.take()) handle(delivery, context_.clock.now());
}

void Loop::run_timers() {
  end_waiting();
  context_.parking.sign(context_.now, [this](net::PeerId peer, std::uint64_t request) {
    proto::Envelope origin;
    origin.set_id(request);
    net::Packet sign = net::reply_to(origin);
    sign.envelope.set_working(true);
    push(peer, std::move(sign), nullptr, context_.now);
  });
  answer_waiters();
  if (!may_change()) return;
  if (auto applied = context_.outbox.apply_answers(); !applied) context_.rows.break_with(std::move(applied.error()));
  if (context_.now >= tick_) {
    refresh_description(context_);
    if (context_.config.look_at_keys) context_.config.look_at_keys();
    // Not when this process itself was stopped: heartbeats may wait to be read.
    const bool came_late = context_.now - tick_ > kCameLate;
    tick_ = context_.now + kTick;
    if (!came_late) {
      if (auto declared = declare_silent(context_); !declared) context_.rows.break_with(std::move(declared.error()));
    }
    sweep_sessions();
    released(context_, context_.opens.expire(context_.wall));
    context_.outbox.expire_held(context_.wall);
    context_.registry.log_changes(context_.now);
    pair_census_.step(context_);
    if (context_.locks.has_ended()) {
      if (auto erased = context_.locks.erase_ended(); !erased) context_.rows.break_with(std::move(erased.error()));
    }
    if (context_.registry.has_unstored()) {
      if (auto stored = context_.registry.store_all(); !stored) context_.rows.break_with(std::move(stored.error()));
    }
  }
  if (auto stored = context_.outbox.store_released(context_.wall); !stored)
    context_.rows.break_with(std::move(stored.error()));
  if (auto noted = note_left_open(context_); !noted) context_.rows.break_with(std::move(noted.error()));
  if (context_.now >= prune_) prune_answers();
  run_job();
}

void Loop::prune_answers() {
  const auto done = context_.sessions.prune(context_.wall, kPruneStep);
  if (!done) spdlog::warn("{}", done.error().to_string());
  prune_ = context_.now + (done && !*done ? kTick : kPrunePeriod);
}

void Loop::sweep_sessions() {
  context_.sessions.probe_silent(context_.now, [this](net::PeerId peer) {
    net::Packet sign;  // for nobody's request: it is dropped, if there is somebody
    sign.envelope.set_working(true);
    (void)context_.world.messenger.send(peer, std::move(sign));
  });
  context_.sessions.sweep(
      context_.now, [this](Session& session) { end_session(context_, session); },
      [this](Session& session) {
        end_session(context_, session);
        std::vector<std::uint64_t> files(session.creating.begin(), session.creating.end());
        std::erase_if(files, [&](std::uint64_t file) { return context_.shared.has_others(file, session.id); });
        std::sort(files.begin(), files.end());
        for (const std::uint64_t file : files) {
          if (auto aborted = abort_pending(context_, file); !aborted)
            context_.rows.break_with(std::move(aborted.error()));
        }
        context_.rows.on_abort([this, id = session.id, uid = session.who.uid, files] {
          if (files.empty()) return;
          Session& again = context_.sessions.absent(id, uid, context_.now);
          again.creating.insert(files.begin(), files.end());
        });
      });
}

// A part of one recursive removal; the next turn does a part of the next.
void Loop::run_job() {
  if (context_.jobs.empty()) return;
  PIF_ASSERT(may_change() && !job_stepped_, context_.standing, context_.jobs.size());
  RemoveJob job = std::move(context_.jobs.front());
  context_.jobs.pop_front();
  auto finished = step_remove(context_, job, kJobStep);
  job_stepped_ = true;
  if (finished && *finished) {
    net::Packet reply = net::reply_to(job.request);
    *reply.envelope.mutable_remove_reply() = std::move(job.reply);
    if (Session* session = context_.sessions.find(job.session)) {
      session->running.erase(job.request.id());
      context_.sessions.remember(*session, job.request.id(), reply.envelope, true);
    }
    push(job.peer, std::move(reply), &kRemoveOperation, job.arrived);
    return;
  }
  if (finished && context_.now >= job.next_sign) {
    job.next_sign = context_.now + kSignEvery;
    net::Packet sign = net::reply_to(job.request);
    sign.envelope.set_working(true);
    push(job.peer, std::move(sign), nullptr, job.arrived);
  }
  context_.jobs.push_back(std::move(job));  // a failed one is answered by fail_jobs()
}

void Loop::answer_waiters() {
  if (context_.waiters.empty()) return;
  const std::size_t up = context_.registry.up_count(context_.now);
  std::erase_if(context_.waiters, [&](NodesWaiter& waiter) {
    const bool done = up >= waiter.wait_up || context_.now >= waiter.deadline;
    if (!done && context_.now < waiter.next_sign) return false;
    proto::Envelope origin;
    origin.set_id(waiter.request);
    net::Packet reply = net::reply_to(origin);
    if (done) {
      describe_nodes(context_, *reply.envelope.mutable_nodes_reply());
    } else {
      waiter.next_sign = context_.now + kSignEvery;
      reply.envelope.set_working(true);
    }
    push(waiter.peer, std::move(reply), done ? &kNodesOperation : nullptr, waiter.arrived);
    return done;
  });
}

// After all else in the turn that may be news to them.
void Loop::answer_groups() {
  context_.groups.expire(context_.now);
  for (const ParallelGroups::Answer& answer : context_.groups.take_answers()) {
    proto::Envelope origin;
    origin.set_id(answer.to.request);
    net::Packet reply = net::reply_to(origin);
    fill_answer(answer, reply.envelope);
    push(answer.to.peer, std::move(reply), answer.to_controller ? &kReleaseOperation : &kAwaitOperation,
         answer.to.arrived);
  }
}

std::size_t Loop::waiting() const { return context_.jobs.size() + context_.waiters.size() + context_.groups.waiting(); }

void Loop::finish_turn() {
  if (auto stored = context_.sessions.store_answers(context_.wall); !stored)
    context_.rows.break_with(std::move(stored.error()));
  if (context_.rows.writing() && !context_.rows.is_broken()) {
    Status stamped = store_folder_times(context_);
    if (stamped) stamped = context_.registry.store_all();
    if (stamped && context_.locks.has_ended()) stamped = context_.locks.erase_ended();
    if (stamped) stamped = context_.numbers.stamp();
    if (!stamped) context_.rows.break_with(std::move(stamped.error()));
  }
  const Status committed = context_.rows.commit();
  context_.changed_folders.clear();
  context_.sessions.end_turn(!committed);
  std::optional<Error> failed;
  if (!committed) {
    spdlog::error("a transaction failed, and nothing of it was done: {}", committed.error().to_string());
    failed = committed.error();
    if (job_stepped_) fail_jobs(*failed);
  }
  job_stepped_ = false;
  send_replies(failed);
  if (!may_change()) return;
  // From what is durable: a file whose removal failed with this turn is there, and no LFS may be told otherwise.
  if (auto refilled = context_.outbox.refill(context_.wall); !refilled)
    spdlog::warn("{}", refilled.error().to_string());
  context_.outbox.pump(context_.now, context_.wall, context_.numbers.moment());
}

void Loop::fail_jobs(const Error& error) {
  for (const RemoveJob& job : context_.jobs) {
    if (Session* session = context_.sessions.find(job.session)) session->running.erase(job.request.id());
    push(job.peer, net::error_reply(job.request, error, kNode), &kRemoveOperation, job.arrived);
  }
  context_.jobs.clear();
}

void Loop::send_replies(const std::optional<Error>& failed) {
  const Time now = context_.clock.now();
  context_.stats.set_under_way(replies_.size() + waiting());
  for (Reply& reply : replies_) {
    if (failed && reply.depends) {  // errors too: they may rest on rows that are not there now
      proto::Envelope origin;
      origin.set_id(reply.packet.envelope.id());
      reply.packet = net::error_reply(origin, *failed, kNode);
    }
    // What LFSs keep of the directory is durable.
    if (reply.packet.envelope.has_heartbeat_reply())
      *reply.packet.envelope.mutable_heartbeat_reply()->mutable_moment() = context_.numbers.moment();
    if (reply.packet.envelope.heartbeat_reply().has_view())
      reply.packet.envelope.mutable_heartbeat_reply()->set_view(
          wire::pack_view(context_.config.key.signing(), context_.registry.views().view()));
    if (reply.packet.envelope.has_file_states_reply())
      *reply.packet.envelope.mutable_file_states_reply()->mutable_moment() = context_.numbers.moment();
    const std::uint64_t id = reply.packet.envelope.id();
    if (reply.operation != nullptr) {
      const proto::Envelope& envelope = reply.packet.envelope;
      const Code code = envelope.has_error() ? static_cast<Code>(envelope.error().code()) : Code::kOk;
      context_.stats.add(reply.operation->request, 0, reply.packet.body.size(), code, now - reply.arrived);
    }
    Status sent = context_.world.messenger.send(reply.peer, std::move(reply.packet));
    if (!sent && sent.error().code == Code::kTooLarge) {
      proto::Envelope origin;
      origin.set_id(id);
      sent = context_.world.messenger.send(reply.peer, net::error_reply(origin, sent.error(), kNode));
    }
    if (!sent) spdlog::debug("a reply was not sent: {}", sent.error().to_string());
  }
  replies_.clear();
  context_.stats.set_under_way(waiting());
}

}  // namespace pif::server
