// The event loop: deliveries in, handlers, group commits, answers out.
#include "pif/lfs/lfs.h"
#include "pif/base/assert.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "append/append_coordinator.h"
#include "append/appending.h"
#include "append/deputy.h"
#include "append/lengths.h"
#include "context/lfs_context.h"
#include "context/waiting_room.h"
#include "overwrite/overwriting.h"
#include "parity/copying.h"
#include "parity/covering.h"
#include "parity/gathering.h"
#include "parity/keeping.h"
#include "pif/base/limits.h"
#include "pif/base/version.h"
#include "pif/net/calls.h"
#include "rebuild/lacking.h"
#include "rebuild/rebuild.h"
#include "rebuild/reconstructing.h"
#include "redo/recovery.h"
#include "requests/holding.h"
#include "requests/managing.h"
#include "requests/reading.h"
#include "requests/reporting.h"
#include "requests/scattering.h"
#include "requests/sizing.h"
#include "requests/writing.h"
#include "scrub/drill.h"
#include "scrub/scrub.h"
#include "stand_in/stand_in.h"
#include "store/catalogue.h"
#include "store/root.h"
#include "workers/worker_host.h"

namespace pif::lfs {
namespace {

using proto::Envelope;

constexpr std::uint64_t kWindowBytes = 8u << 20;  // credit of a peer
constexpr std::uint32_t kWindowRequests =
    1024;  // the same, in requests: transports queue 4,096 for a peer that does not read
constexpr unsigned kDeliveriesPerTurn = 64;         // handled before what they caused is committed
constexpr std::uint64_t kBytesPerTurn = 16u << 20;  // the same, as net::Turns counts them
constexpr std::size_t kFibersMax = 12288;  // each has a stack of two mappings; the kernel gives a process 65,530
constexpr Duration kTurnMax = std::chrono::seconds(1);
static_assert(kWindowBytes + kBodyBytesMax <= net::Turns::kPeerBytesMax);
static_assert(kWindowRequests < net::Turns::kPeerRequestsMax);

}  // namespace

struct Lfs::Impl {
  Impl(Config config_in, World world)
      : config(std::move(config_in)),
        context(config, world, [this](net::PeerId peer) { return worker_host.identity_of(peer); }),
        worker_host(config, world, context.fibers, context.operations,
                    [this](net::PeerId worker) { context.input_locks.drop(worker); }) {
    context.operations.bind<&Impl::hello>(*this, When::kAlways);
    context.operations.bind<&Impl::stats>(*this, When::kAlways);
    context.operations.bind<&Impl::attach>(*this);
    context.operations.start();
  }

  ~Impl() {
    context.world.executor.drain();  // work refers to what is on the fibers' stacks
    context.fibers.end_all();
  }

  Status open();
  Status serve(const std::atomic<bool>& stop);
  Time deadline() const;
  Status take_deliveries(const std::atomic<bool>& stop, bool at_once);
  void handle(net::Delivery& delivery, Time arrived);
  void handle_request(net::Delivery& delivery, Time arrived);
  bool may_serve(net::Delivery& delivery);
  void refuse(const net::Delivery& delivery, Code code, const std::string& why);
  void end_waiting();
  void dispatch(Request request);
  void run(const Handler& handler, Request request);
  Result<net::Packet> attach(const Request& request, const proto::Attach& asked);
  Result<net::Packet> hello(const Request& request, const proto::Hello& asked);
  Result<net::Packet> stats(const Request& request, const proto::Stats& asked);
  bool end_turn();

  const Config config;
  LfsContext context;
  Reading reading{context};
  Writing writing{context};
  Scattering scattering{context, writing, reading};
  Appending appending{context};
  Managing managing{context};
  Reporting reporting{context, managing};
  Keeping keeping{context, writing.seal_sync()};
  Holding holding{context};
  Overwriting overwriting{context, keeping.peers, holding};
  AppendCoordinator append_coordinator{context, keeping.peers};
  Deputy deputy{context};
  Lengths lengths{context, append_coordinator, managing.aside()};
  Gathering gathering{keeping};
  Rebuild rebuild{keeping, managing, reporting};
  Drill drill{keeping, reporting};
  Covering covering{keeping};
  Copying copying{keeping, gathering, covering};
  Reconstructing reconstructing{keeping};
  Scrub scrub{keeping, managing, reporting, lengths, holding};
  StandIn stand_in{keeping};
  Sizing sizing{context};
  WaitingRoom waiting_room;
  WorkerHost worker_host;
};

Lfs::Lfs(Config config, World world) : impl_(std::make_unique<Impl>(std::move(config), std::move(world))) {}
Lfs::~Lfs() = default;
Status Lfs::open() { return impl_->open(); }
Status Lfs::serve(const std::atomic<bool>& stop) { return impl_->serve(stop); }

Status Lfs::Impl::open() {
  PIF_TRY(claim_root(context.world.storage, context.world.catalogue, config.root,
                     {config.cluster, config.node, config.name, config.uuid}));
  PIF_TRY(replay_log(context.world.storage, context.world.catalogue, config.root, context.log));
  overwriting.remember(context.log.found());
  PIF_TRY(context.numbers.load(context.world.catalogue, context.log.last_number()));
  PIF_TRY_VALUE(const std::string view, catalogue::view(context.world.catalogue));
  PIF_TRY(context.view.load(view));
  PIF_TRY_VALUE(context.scrubbed, catalogue::scrub(context.world.catalogue));
  PIF_TRY_VALUE(const auto lacking, catalogue::lacking(context.world.catalogue));
  context.lost_files.set_lacking(lacking_of(lacking));
  context.numbers.begin_era(context.view.era_of(config.node));
  PIF_TRY(clear_leftovers(context.world.storage, context.world.catalogue, config.root,
                          context.world.messenger.clock().wall_seconds()));
  PIF_TRY(context.components.load(context.now()));
  PIF_TRY(managing.load_aside());
  spdlog::info("{} serves {}: {} components, {} bytes", config.name, config.root,
               context.components.totals().components, context.components.totals().bytes);
  return {};
}

Status Lfs::Impl::serve(const std::atomic<bool>& stop) {
  bool more = true;  // a turn left something that can go on at once
  while (!stop.load(std::memory_order_acquire)) {
    if (auto taken = take_deliveries(stop, more); !taken && !stop.load(std::memory_order_acquire)) return taken;
    more = end_turn();
    if (reporting.must_end()) return fail(Code::kUnavailable, *reporting.must_end());
  }
  return {};
}

Time Lfs::Impl::deadline() const {
  return std::min({context.now() + kTurnMax, context.fibers.next_deadline(), waiting_room.next_deadline(),
                   context.replies.next_deadline()});
}

Status Lfs::Impl::take_deliveries(const std::atomic<bool>& stop, bool at_once) {
  Time until = at_once ? Time::min() : deadline();
  const std::uint64_t end = context.turns.cost() + kBytesPerTurn;
  for (unsigned i = 0; i < kDeliveriesPerTurn && context.turns.cost() < end; ++i) {
    if (stop.load(std::memory_order_acquire)) break;
    PIF_TRY_VALUE(auto received, context.turns.receive(until));
    if (!received) return {};
    handle(received->delivery, received->arrived);
    until = Time::min();  // what is there already shares the turn
  }
  return {};
}

void Lfs::Impl::handle(net::Delivery& delivery, Time arrived) {
  using Kind = net::Delivery::Kind;
  if (delivery.kind == Kind::kWake) {
    if (context.world.on_wake) context.world.on_wake();
    return;
  }
  if (delivery.kind == Kind::kClosed) {  // concerns everybody
    context.replies.drop_peer(delivery.peer);
    context.authorizer.forget(delivery.peer);
    append_coordinator.drop_peer(delivery.peer);
    holding.drop_peer(delivery.peer);
    waiting_room.drop(delivery.peer);
    reading.drop_peer(delivery.peer);
    reporting.offer(delivery);
    keeping.peers.offer(delivery);
    worker_host.offer(delivery);
    return;
  }
  const bool is_taken = reporting.offer(delivery) || keeping.peers.offer(delivery) || worker_host.offer(delivery);
  if (!is_taken && may_serve(delivery)) handle_request(delivery, arrived);
}

// What may be asked of an LFS that does not serve. Other requests wait for the server to admit it.
bool Lfs::Impl::may_serve(net::Delivery& delivery) {
  if (context.standing == Standing::kServing || net::is_reply(delivery.packet.envelope)) return true;
  const Handler* handler = context.operations.find(delivery.packet.envelope.op_case());
  if (handler != nullptr && handler->when == When::kAlways) return true;
  if (context.standing == Standing::kStale) {
    refuse(delivery, Code::kStaleNode, context.stale);
  } else if (!waiting_room.add(delivery, context.now())) {
    refuse(delivery, Code::kBusy, "too many requests wait for the PIF Server to admit this LFS");
  }
  return false;
}

void Lfs::Impl::refuse(const net::Delivery& delivery, Code code, const std::string& why) {
  context.replies.send_answer(delivery.peer, net::error_reply(delivery.packet.envelope, {code, why, {}}, config.name),
                              delivery.packet.envelope.op_case(), context.now());
}

void Lfs::Impl::end_waiting() {
  if (waiting_room.empty()) return;
  if (context.standing == Standing::kWaiting) {
    for (const auto& delivery : waiting_room.take_late(context.now()))
      refuse(delivery, Code::kUnavailable,
             "this LFS has been started and waits for the PIF Server, which alone knows whether it is up to date");
    return;
  }
  for (auto& delivery : waiting_room.take_all()) handle(delivery, context.now());
}

void Lfs::Impl::handle_request(net::Delivery& delivery, Time arrived) {
  if (net::is_reply(delivery.packet.envelope)) return;  // one that came too late: never to be answered
  Request request{daemon::request_of(delivery, arrived), {}, {}};
  if (request.envelope().version() != kProtocolVersion)
    return context.replies.answer(
        request, fail(Code::kVersion, fmt::format("protocol version {} is asked for, this LFS speaks {}",
                                                  request.envelope().version(), kProtocolVersion)));
  auto who = context.authorizer.identify(request.peer, request.envelope());
  if (!who) return context.replies.answer(request, fail(std::move(who.error())));
  request.who = *who;
  dispatch(std::move(request));
}

// The table says what the requester must show; a handler runs for who has shown it.
void Lfs::Impl::dispatch(Request request) {
  PIF_ASSERT(request.deadline >= request.arrived && !net::is_reply(request.envelope()));
  const int op = request.envelope().op_case();
  const Handler* handler = context.operations.find(op);
  if (op == Envelope::OP_NOT_SET)
    return context.replies.answer(request,
                                  fail(Code::kUnsupported, "the request has no operation that this LFS knows"));
  if (handler == nullptr)
    return context.replies.answer(request,
                                  fail(Code::kUnsupported, fmt::format("operation {} is not one of an LFS's", op)));
  if (const auto needed = handler->needed(request.envelope()); needed.rights != 0) {
    auto allowed = context.authorizer.allow(request.peer, request.who, request.envelope(), needed.file, needed.rights);
    if (!allowed) return context.replies.answer(request, fail(std::move(allowed.error())));
    request.capability = *allowed;
  }
  if (context.fibers.count() >= kFibersMax)
    return context.replies.answer(request, fail(Code::kRetry, "too many requests are under way here"));
  const Handler* const instead = stand_in.find(request);  // of an absent LFS
  run(instead != nullptr ? *instead : *handler, std::move(request));
}

// Each request has a fiber. One that is not answered when it waits for the first time is answered later.
void Lfs::Impl::run(const Handler& handler, Request request) {
  const auto running = std::make_shared<Request>(std::move(request));
  const bool has_ended = context.fibers.start([this, &handler, running] {
    auto result = handler.run(handler.part, *running);
    if (result) context.replies.answer(*running, std::move(*result));
  });
  if (!has_ended) context.replies.defer(*running);
}

Result<net::Packet> Lfs::Impl::attach(const Request& request, const proto::Attach& asked) {
  const auto via = context.world.messenger.identity(request.peer).via;
  if (via != net::Identity::Via::kUnix && via != net::Identity::Via::kSimulated)
    return fail(Code::kUnsupported, "descriptors travel over Unix sockets only: use Read and Write here");
  return asked.has_create() ? writing.attach(request) : reading.attach(request);
}

Result<net::Packet> Lfs::Impl::hello(const Request& request, const proto::Hello& asked) {
  context.turns.introduce(request.peer, asked.program(), request.who.uid.value_or(0));
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_hello_reply();
  out->set_cluster(config.cluster);
  out->set_node(config.name);
  out->set_uid(request.who.uid.value_or(0));
  out->set_window_bytes(kWindowBytes);
  out->set_window_requests(kWindowRequests);
  out->set_pid(static_cast<std::uint32_t>(config.pid));
  return reply;
}

Result<net::Packet> Lfs::Impl::stats(const Request& request, const proto::Stats&) {
  net::Packet reply = Replies::reply(request);
  proto::StatsReply& out = *reply.envelope.mutable_stats_reply();
  out = context.replies.stats();
  context.turns.describe(out);
  out.set_version(std::string(version()));
  out.set_pid(config.pid);
  out.set_log_bytes(context.log.bytes());
  out.set_log_bytes_max(config.log_bytes);
  out.set_log_written(context.log.written());
  out.set_view(context.view.index());
  out.set_has_lease(context.view.has_lease(context.world.messenger.clock().boottime()));
  return reply;
}

// Everything that the turn's requests share: batches start, what is decided is committed. True if more can be done now.
bool Lfs::Impl::end_turn() {
  end_waiting();
  context.fibers.run();
  // While changes are held none begins; those under way end first.
  const bool is_held = holding.is_asked() && !overwriting.busy();
  rebuild.turn(context.standing == Standing::kServing && !holding.is_asked());
  PIF_ASSERT(!is_held || holding.is_asked());
  const bool committed = !is_held && !context.batch.empty();
  if (!is_held) context.batch.flush();
  if (is_held) holding.begin();
  context.fibers.run();
  context.replies.tick(context.now());
  reporting.look_at_disk();
  context.components.evict();
  // A commit, or an executor that works at once, may let the next batch start.
  if (holding.is_asked()) return committed || context.fibers.next_deadline() <= context.now();
  return committed || !context.batch.empty() || context.fibers.next_deadline() <= context.now();
}

}  // namespace pif::lfs
