// An LFS, and a turn of its loop: deliveries in, handlers, group commits, answers out.
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
#include "overwrite/overwriting.h"
#include "parity/copying.h"
#include "parity/covering.h"
#include "parity/gathering.h"
#include "parity/keeping.h"
#include "pif/base/limits.h"
#include "pif/base/version.h"
#include "pif/daemon/loop.h"
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
constexpr Duration kPatience = std::chrono::seconds(3);  // until the server has admitted this LFS
static_assert(kWindowBytes + kBodyBytesMax <= net::Turns::kPeerBytesMax);
static_assert(kWindowRequests < net::Turns::kPeerRequestsMax);

}  // namespace

struct Lfs::Impl final : daemon::TurnHandler {
  Impl(Config config_in, World world)
      : config(std::move(config_in)),
        context(config, world, [this](net::PeerId peer) { return worker_host.identity_of(peer); }),
        worker_host(config, world, context.fibers, context.caller, context.operations,
                    [this](net::PeerId worker) { context.input_locks.drop(worker); }),
        loop(context.turns, context.fibers, *this, kDeliveriesPerTurn) {
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
  // ---- a turn ----
  void begin_turn() override { turn_end = context.turns.cost() + kBytesPerTurn; }
  void take(net::Turns::Arrival& arrival) override;
  bool has_room() const override { return context.turns.cost() < turn_end; }
  Result<bool> end_turn() override;
  void commit();
  void woken();
  void forget(net::Delivery& closed);
  void start(net::Delivery& delivery, Time arrived);
  bool may_commit() const { return !holding.is_asked() || overwriting.busy(); }
  bool is_commit_due() const { return may_commit() ? !context.batch.empty() : !holding.has_begun(); }

  // ---- on a request's fiber ----
  void answer(const std::shared_ptr<Request>& request);
  std::optional<Result<net::Packet>> serve(Request& request);
  Result<bool> admit(const Request& request, When when);
  Result<net::Packet> attach(const Request& request, const proto::Attach& asked);
  Result<net::Packet> hello(const Request& request, const proto::Hello& asked);
  Result<net::Packet> stats(const Request& request, const proto::Stats& asked);

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
  Rebuild rebuild{keeping, managing, reporting, holding};
  Drill drill{keeping, reporting};
  Covering covering{keeping};
  Copying copying{keeping, gathering, covering};
  Reconstructing reconstructing{keeping};
  Scrub scrub{keeping, managing, reporting, lengths, holding};
  StandIn stand_in{keeping};
  Sizing sizing{context};
  WorkerHost worker_host;
  daemon::Loop loop;
  std::uint64_t turn_end = 0;  // cost (net/turns.h) at which this turn takes no more
};

Lfs::Lfs(Config config, World world) : impl_(std::make_unique<Impl>(std::move(config), std::move(world))) {}
Lfs::~Lfs() = default;
Status Lfs::open() { return impl_->open(); }
Status Lfs::serve(const std::atomic<bool>& stop) { return impl_->loop.serve(stop); }

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

void Lfs::Impl::take(net::Turns::Arrival& arrival) {
  using Kind = net::Delivery::Kind;
  net::Delivery& delivery = arrival.delivery;
  if (delivery.kind == Kind::kWake) return woken();
  if (delivery.kind == Kind::kClosed) return forget(delivery);
  // An answer that came too late is never to be answered.
  if (!context.caller.offer(delivery) && !net::is_reply(delivery.packet.envelope)) start(delivery, arrival.arrived);
}

// Work away from the loop has ended, and the disk may have failed in it.
void Lfs::Impl::woken() {
  if (context.world.on_wake) context.world.on_wake();
  if (context.world.health != nullptr && context.world.health->take_news()) reporting.look_at_disk_soon();
}

void Lfs::Impl::forget(net::Delivery& closed) {
  const net::PeerId peer = closed.peer;
  context.replies.drop_peer(peer);
  context.admission.notify();
  context.authorizer.forget(peer);
  append_coordinator.drop_peer(peer);
  holding.drop_peer(peer);
  reading.drop_peer(peer);
  keeping.peers.closed(peer);
  context.caller.offer(closed);
  reporting.closed(peer);
  worker_host.closed(peer);
}

// Each request has a fiber. One that is not answered when it waits for the first time is answered later.
void Lfs::Impl::start(net::Delivery& delivery, Time arrived) {
  const auto request = std::make_shared<Request>(Request{daemon::request_of(delivery, arrived), {}, {}});
  if (context.fibers.count() >= kFibersMax)
    return context.replies.answer(*request, fail(Code::kRetry, "too many requests are under way here"));
  if (!context.fibers.start<&Impl::answer>(*this, request)) context.replies.defer(*request);
}

void Lfs::Impl::answer(const std::shared_ptr<Request>& request) {
  auto result = serve(*request);
  if (result) context.replies.answer(*request, std::move(*result));
}

// The table says what the requester must show; a handler runs for who has shown it. Nothing: there is no answer.
std::optional<Result<net::Packet>> Lfs::Impl::serve(Request& request) {
  PIF_ASSERT(request.deadline >= request.arrived && !net::is_reply(request.envelope()));
  if (request.envelope().version() != kProtocolVersion)
    return fail(Code::kVersion, fmt::format("protocol version {} is asked for, this LFS speaks {}",
                                            request.envelope().version(), kProtocolVersion));
  const int op = request.envelope().op_case();
  const Handler* const handler = context.operations.find(op);
  PIF_TRY_VALUE(const bool is_asked_still, admit(request, handler != nullptr ? handler->when : When::kServing));
  if (!is_asked_still) return std::nullopt;
  PIF_TRY_VALUE(request.who, context.authorizer.identify(request.peer, request.envelope()));
  if (op == Envelope::OP_NOT_SET) return fail(Code::kUnsupported, "the request has no operation that this LFS knows");
  if (handler == nullptr) return fail(Code::kUnsupported, fmt::format("operation {} is not one of an LFS's", op));
  if (const auto needed = handler->needed(request.envelope()); needed.rights != 0) {
    PIF_TRY_VALUE(request.capability,
                  context.authorizer.allow(request.peer, request.who, request.envelope(), needed.file, needed.rights));
  }
  const Handler* const instead = stand_in.find(request);  // of an absent LFS
  const Handler& runs = instead != nullptr ? *instead : *handler;
  return runs.run(runs.part, request);
}

// Waits until the server has admitted this LFS. False: nobody waits for the answer any more.
Result<bool> Lfs::Impl::admit(const Request& request, When when) {
  const Time until = context.now() + kPatience;
  while (when == When::kServing && context.standing != Standing::kServing) {
    if (context.standing == Standing::kStale) return fail(Code::kStaleNode, context.stale);
    if (context.now() >= until)
      return fail(Code::kUnavailable,
                  "this LFS has been started and waits for the PIF Server, which alone knows whether it is up to date");
    PIF_TRY_VALUE(const bool is_asked_still, context.admission.wait(request, until));
    if (!is_asked_still) return false;
  }
  return true;
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

Result<bool> Lfs::Impl::end_turn() {
  if (is_commit_due()) commit();
  if (reporting.must_end()) return fail(Code::kUnavailable, *reporting.must_end());
  return is_commit_due();
}

// Commits what the turn's requests have decided. While changes are held nothing is committed; those under way end
// first.
void Lfs::Impl::commit() {
  if (may_commit())
    context.batch.flush();
  else
    holding.begin();
  context.fibers.run();  // their answers belong to this turn
}

}  // namespace pif::lfs
