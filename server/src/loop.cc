#include "loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/net/calls.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::server {
namespace {

constexpr unsigned kDeliveriesPerTurn = 512;
constexpr std::size_t kEntryBytes = 4096;  // what one of them counts as (net/turns.h)
constexpr std::string_view kNode = "server";

bool is_recorded(const wire::Operation& operation) { return operation.again == wire::Again::kDeduplicated; }
bool needs_session(const wire::Operation& operation) {
  return operation.at_server == wire::Right::kSession || operation.at_server == wire::Right::kOwner;
}

}  // namespace

Loop::Loop(ServerContext& context)
    : context_(context), background_(context), loop_(context.turns, context.fibers, *this, kDeliveriesPerTurn) {
  for (const auto bind : {bind_reading, bind_names, bind_removing, bind_lifecycle, bind_sharing, bind_parallel_open,
                          bind_opening, bind_admission, bind_rescue, bind_views, bind_lost_files})
    bind(operations_);
  operations_.start();
}

Loop::~Loop() { context_.fibers.end_all(); }

Status Loop::serve(const std::atomic<bool>& stop) {
  if (auto served = loop_.serve(stop); !served)
    return served.error().code == Code::kCancelled ? Status() : std::move(served);
  store_heard();
  return {};
}

// A stop stores what LFSs have said since the last transaction, too: a copy of their roots that is made next is
// known by it.
void Loop::store_heard() {
  if (!context_.may_change() || !context_.registry.has_unstored()) return;
  if (auto stored = context_.registry.store_all(); !stored) context_.rows.break_with(std::move(stored.error()));
  finish_turn();
}

void Loop::begin_turn() {
  context_.now = context_.clock.now();
  context_.wall = context_.clock.wall_seconds();
  context_.weight = 0;
  PIF_ASSERT(answers_.empty(), answers_.size());
  PIF_ASSERT(!context_.rows.writing() && !context_.rows.is_broken(), context_.rows.writes());
  if (!std::exchange(has_begun_, true)) background_.start();
}

// Fibers that wait for the turn's end go on in the next one.
Result<bool> Loop::end_turn() {
  finish_turn();
  return false;
}

void Loop::take(net::Turns::Arrival& arrival) {
  net::Delivery& delivery = arrival.delivery;
  if (delivery.kind == net::Delivery::Kind::kWake) return;
  if (delivery.kind == net::Delivery::Kind::kClosed) {
    if (Session* session = context_.sessions.closed(delivery.peer, context_.now)) end_session(context_, *session);
    context_.caller.offer(delivery);
    if (context_.held.by == delivery.peer) context_.held = {};
    forget_waiting(context_, delivery.peer);
    return;
  }
  if (context_.caller.offer(delivery) || net::is_reply(delivery.packet.envelope)) return;
  const std::size_t weight = context_.weight;
  const net::PeerId peer = delivery.peer;
  start(delivery, arrival.arrived);
  context_.turns.charge(peer, (context_.weight - weight) * kEntryBytes);
}

// Each request has a fiber. One that has no answer when it waits for the first time is answered later.
void Loop::start(net::Delivery& delivery, Time arrived) {
  const auto request = std::make_shared<daemon::Request>(daemon::request_of(delivery, arrived));
  if (!context_.fibers.start<&Loop::answer>(*this, request)) context_.replies.defer(*request);
}

void Loop::answer(const std::shared_ptr<daemon::Request>& request) {
  auto result = serve(*request);
  if (!result)
    keep(request, fail(std::move(result.error())));
  else if (*result)
    keep(request, std::move(**result));
}

void Loop::keep(std::shared_ptr<const daemon::Request> request, Result<net::Packet> result) {
  const bool depends = context_.rows.writing() || context_.rows.is_broken();
  answers_.push_back({std::move(request), std::move(result), depends});
  if (answers_.back().request->token == 0) context_.replies.count_waiting(++not_deferred_);
  PIF_ASSERT(not_deferred_ <= answers_.size(), not_deferred_, answers_.size());
}

Result<std::optional<net::Packet>> Loop::serve(const daemon::Request& request) {
  const proto::Envelope& envelope = request.envelope();
  const int op = envelope.op_case();
  if (envelope.version() != kProtocolVersion)
    return fail(Code::kVersion,
                fmt::format("this server speaks protocol version {}, not {}", kProtocolVersion, envelope.version()));
  const Handler* handler = operations_.find(op);
  if (handler == nullptr) return fail(Code::kUnsupported, fmt::format("the PIF Server has no operation {}", op));
  PIF_ASSERT(wire::find_operation(op) != nullptr, op);
  const wire::Operation& operation = *wire::find_operation(op);
  PIF_TRY_VALUE(const bool is_asked_still, admit(request, handler->when));
  if (!is_asked_still) return std::nullopt;
  Session* session = nullptr;
  if (needs_session(operation)) {
    PIF_TRY_VALUE(session, session_of(request, is_recorded(operation)));
    if (session == nullptr) return std::nullopt;
  }
  if (is_recorded(operation)) {
    if (const Answer* answer = session->answer_to(envelope.id())) return given_before(*answer, operation);
  }
  PIF_TRY(check_right(operation.at_server, envelope, session));
  return run(*handler, request, session, is_recorded(operation));
}

// A request that is being done, and comes again over a new connection, waits for its answer. Null: nobody waits for
// this one any more.
Result<Session*> Loop::session_of(const daemon::Request& request, bool is_recorded) {
  for (;;) {
    PIF_TRY_VALUE(Session* const session,
                  context_.sessions.of(request.peer, request.envelope().credential(),
                                       context_.world.messenger.identity(request.peer), context_.now, context_.wall));
    PIF_ASSERT(session != nullptr && !session->has_ended());
    if (!is_recorded || !session->running.contains(request.envelope().id())) return session;
    PIF_TRY(check_room(context_));
    if (!context_.removals_over.wait(request.deadline) || context_.replies.is_dropped(request)) return nullptr;
  }
}

Result<std::optional<net::Packet>> Loop::given_before(const Answer& answer, const wire::Operation& operation) {
  net::Packet packet;
  if (!packet.envelope.ParseFromString(answer.reply))
    return fail(Code::kCorrupt, "the answer that was given before cannot be read");
  if (packet.envelope.has_error()) return fail(wire::error_of(packet.envelope.error()));
  if (packet.envelope.op_case() != operation.reply)
    return fail(Code::kInvalid, "another request of this session had the same id");
  return packet;
}

Result<std::optional<net::Packet>> Loop::run(const Handler& handler, const daemon::Request& request, Session* session,
                                             bool is_recorded) {
  const std::uint64_t id = request.envelope().id(), session_id = session != nullptr ? session->id : 0;
  net::Packet reply = daemon::Replies::reply(request);
  Call call{request, session, reply.envelope};
  const std::uint64_t writes = context_.rows.writes(), waits = context_.fibers.waits();
  const Status done = handler.run(context_, call);
  const bool has_waited = context_.fibers.waits() != waits;
  const bool wrote = has_waited || context_.rows.writes() != writes;  // by its end
  // A handler checks first and writes last; one that failed in between has left half of something.
  if (!done && wrote && !has_waited) context_.rows.break_with(done.error());
  if (call.is_unanswered) return std::nullopt;
  PIF_ASSERT(session != nullptr || !is_recorded, request.envelope().op_case());
  // What failed after a part of it had become durable is not done: it may be asked for again.
  if (is_recorded && (done || !has_waited)) {
    if (has_waited) session = context_.sessions.find(session_id);
    const auto& given = done ? reply.envelope : net::error_reply(request.envelope(), done.error(), kNode).envelope;
    if (session != nullptr) context_.sessions.remember(*session, id, given, wrote);
  }
  if (!done) return fail(done.error());
  return reply;
}

Status Loop::check_right(wire::Right right, const proto::Envelope& request, const Session* session) const {
  PIF_ASSERT(right != wire::Right::kNone && (right != wire::Right::kOwner || session != nullptr), right);
  if (right == wire::Right::kManage) return require_manager(context_, request);
  return right == wire::Right::kOwner ? require_owner(session->who) : Status();
}

// False: nobody waits for the answer any more.
Result<bool> Loop::admit(const daemon::Request& request, unsigned when) {
  for (;;) {
    const unsigned now = (is_early(context_.standing) ? kWhileGathering : 0u) |
                         (context_.standing == Standing::kBehind ? kWhileBehind : 0u) |
                         (context_.is_held() ? kWhileHeld : 0u);
    if ((now & ~when) == 0) return true;
    if ((now & ~when & kWhileBehind) != 0) return fail(Code::kStaleServer, context_.behind);
    PIF_TRY(check_room(context_));
    PIF_TRY_VALUE(const bool is_asked_still, context_.admission.wait(request));
    if (!is_asked_still) return false;
  }
}

// What the turn has made known, and what all that it has written needs besides.
Status Loop::write_last() {
  if (context_.may_change()) {
    PIF_TRY(context_.outbox.store_released(context_.wall));
    PIF_TRY(note_left_open(context_));
  }
  PIF_TRY(context_.sessions.store_answers(context_.wall));
  if (!context_.rows.writing() || context_.rows.is_broken()) return {};
  PIF_TRY(store_folder_times(context_));
  PIF_TRY(context_.registry.store_all());
  if (context_.locks.has_ended()) PIF_TRY(context_.locks.erase_ended());
  return context_.numbers.stamp();
}

void Loop::finish_turn() {
  if (auto written = write_last(); !written) context_.rows.break_with(std::move(written.error()));
  const Status committed = context_.rows.commit();
  context_.changed_folders.clear();
  context_.sessions.end_turn(!committed);
  std::optional<Error> failed;
  if (!committed) {
    spdlog::error("a transaction failed, and nothing of it was done: {}", committed.error().to_string());
    failed = committed.error();
  }
  context_.turn.end(failed);
  send_answers(failed);
  if (!context_.may_change()) return;
  // From what is durable: a file whose removal failed with this turn is there, and no LFS may be told otherwise.
  if (auto refilled = context_.outbox.refill(context_.wall); !refilled)
    spdlog::warn("{}", refilled.error().to_string());
}

// Errors too fail with the turn: they may rest on rows that are not there now.
void Loop::send_answers(const std::optional<Error>& failed) {
  for (auto& [request, result, depends] : std::exchange(answers_, {})) {
    if (failed && depends) result = fail(*failed);
    if (result) add_durable(result->envelope);
    context_.replies.answer(*request, std::move(result));
  }
  context_.replies.count_waiting(not_deferred_ = 0);
}

// What LFSs keep of the directory is durable.
void Loop::add_durable(proto::Envelope& reply) const {
  if (reply.has_heartbeat_reply()) *reply.mutable_heartbeat_reply()->mutable_moment() = context_.numbers.moment();
  if (reply.heartbeat_reply().has_view())
    reply.mutable_heartbeat_reply()->set_view(
        wire::pack_view(context_.config.key.signing(), context_.registry.views().view()));
  if (reply.has_file_states_reply()) *reply.mutable_file_states_reply()->mutable_moment() = context_.numbers.moment();
}

}  // namespace pif::server
