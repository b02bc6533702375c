#include "workers/worker_host.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/build_id.h"
#include "pif/base/limits.h"
#include "workers/worker_host_impl.h"

namespace pif::lfs {
namespace {

using proto::Envelope;
using std::chrono::milliseconds;

constexpr Duration kSpawnTimeout = std::chrono::seconds(10);
constexpr std::int64_t kForwardedCredentialSeconds = 60;  // of a user whom the kernel names, without a credential
constexpr std::size_t kJobsMax = 1024;
constexpr std::ptrdiff_t kJobsOfUserMax = kJobsMax / 4;  // so that there is room for others
constexpr std::size_t kWorkersPerJobMax = 256;           // on one LFS
constexpr std::size_t kWorkersMax = 4096;                // of all jobs
constexpr std::uint64_t kKeptBytesMax = 256u << 20;      // of descriptions and results of all jobs,
constexpr std::uint64_t kKeptBytesOfUserMax = kKeptBytesMax / 2;
constexpr int kGrantsMax = 16;                     // folders given to one job's workers,
constexpr std::size_t kGrantBytesMax = 4095;       // and of the path of one
constexpr std::size_t kReplyBytesMax = 96u << 10;  // of events and streams in one JobWaitReply
// Of a JobWait without events, where the transport tells of a controller's end: shorter than kSilenceMax. Elsewhere
// only an answer that finds nobody does.
constexpr Duration kHoldMax = std::chrono::seconds(5);

// The folder, for one worker alone, where others of its job reach it: beside the LFS's Unix socket. libtool has the
// same rule; docs/PROTOCOL.md "Worker host". Empty: this LFS has no such place.
std::string own_folder(const proto::Endpoints& endpoints, std::uint64_t job, std::uint32_t rank) {
  const auto slash = endpoints.unix_path().rfind('/');
  return slash == std::string::npos ? ""
                                    : fmt::format("{}/w{:016x}-{}", endpoints.unix_path().substr(0, slash), job, rank);
}

bool tells_end(const net::Identity& identity) {
  return identity.via == net::Identity::Via::kUnix || identity.via == net::Identity::Via::kSimulated;
}

}  // namespace

// ---- who asks -----------------------------------------------------------------------------------------------------

// A credential speaks for somebody else only when it comes from ZeroMQ (where the kernel says nothing), or from root or
// another LFS of ours, which hand on what a user asked.
Result<net::Identity> WorkerHost::Impl::requester(const Request& request) {
  // The kernel names this LFS where a worker speaks through the socket it was born with.
  if (job_of_worker.contains(request.peer))
    return fail(Code::kPermission, "workers neither start nor end workers: their controller does");
  const net::Identity& kernel = world.messenger.identity(request.peer);
  const auto& credential = request.envelope().credential();
  const bool speaks_for_others = !kernel.has_uid || kernel.uid == 0 || kernel.uid == config.uid;
  if (!speaks_for_others || (credential.empty() && kernel.has_uid)) return kernel;
  if (credential.empty()) {
    return fail(Code::kPermission,
                "a request about workers came without a credential: connect to the PIF Server first");
  }
  PIF_TRY_VALUE(const Credential said,
                verify_credential(config.key, credential, world.messenger.clock().wall_seconds()));
  net::Identity identity = kernel;
  identity.has_uid = true;
  identity.uid = said.uid;
  identity.gids = said.gids;
  return identity;
}

// What is handed on lives as long as what it stands for: the clocks of two hosts may differ by more than a short life.
std::int64_t WorkerHost::Impl::speaks_until(const Job& job, const Request& request) {
  const std::int64_t wall = world.messenger.clock().wall_seconds();
  const auto said = verify_credential(config.key, request.envelope().credential(), wall);
  return said && said->uid == job.uid ? said->expiry : wall + kForwardedCredentialSeconds;
}

Status WorkerHost::Impl::may_use(const Job& job, const Request& request) {
  // Over ZeroMQ a peer is a routing id, which another program may have by now.
  if (request.peer == job.controller && world.messenger.identity(request.peer).has_uid) return {};
  PIF_TRY_VALUE(const net::Identity who, requester(request));
  if (who.uid == job.uid || who.uid == 0) return {};
  return fail(Code::kPermission, fmt::format("job {:016x} belongs to another user (uid {})", job.id, job.uid));
}

// The job, made if it is not known yet: the controller's first wait may come before the spawn tree does.
Result<Job*> WorkerHost::Impl::job_for(std::uint64_t id, const Request& request) {
  if (const auto found = jobs.find(id); found != jobs.end()) {
    PIF_TRY(may_use(found->second, request));
    return &found->second;
  }
  PIF_TRY_VALUE(const net::Identity who, requester(request));
  PIF_TRY(room_for_job(who.uid));
  Job& job = jobs[id];
  job.id = id;
  job.uid = who.uid;
  job.gids = who.gids;
  job.since = world.messenger.clock().wall_seconds();
  job.lease = now() + kJobClaim;
  return &job;
}

// Jobs that were ended, or only waited for, count too, as long as they are remembered.
Status WorkerHost::Impl::room_for_job(std::uint32_t uid) {
  if (jobs.size() >= kJobsMax) {
    return fail(Code::kBusy, fmt::format("{} jobs run here already, which is the limit: try again later", kJobsMax));
  }
  const auto of_user =
      std::count_if(jobs.begin(), jobs.end(), [uid](const auto& job) { return job.second.uid == uid; });
  if (of_user >= kJobsOfUserMax) {
    return fail(Code::kBusy,
                fmt::format("uid {} has {} jobs here already, which is the limit of one user: try again later", uid,
                            kJobsOfUserMax));
  }
  return {};
}

Status WorkerHost::Impl::room_for_bytes(std::uint32_t uid, std::size_t bytes) {
  std::uint64_t all = bytes, of_user = bytes;
  for (const auto& [id, job] : jobs) {
    const std::uint64_t kept = job.kept_bytes();
    all += kept;
    if (job.uid == uid) of_user += kept;
  }
  if (all <= kKeptBytesMax && of_user <= kKeptBytesOfUserMax) return {};
  return fail(
      Code::kBusy,
      fmt::format("descriptions and results of jobs would take {} MiB here, {} MiB of them of uid {}; {} and {} are "
                  "the limits: try again when other jobs have ended",
                  all >> 20, of_user >> 20, uid, kKeptBytesMax >> 20, kKeptBytesOfUserMax >> 20),
      config.name);
}

// ---- spawn --------------------------------------------------------------------------------------------------------

void WorkerHost::Impl::spawn(const Request& request, const proto::Spawn& spawn) {
  auto begun = begin_spawn(request, spawn);
  if (!begun) return refuse(asker_of(request), begun.error());
  Spawning& spawning = **begun;
  if (spawning.waiting == 0 || spawning.error) answer_spawn(spawning);
}

Result<std::shared_ptr<Spawning>> WorkerHost::Impl::begin_spawn(const Request& request, const proto::Spawn& spawn) {
  PIF_TRY_VALUE(const net::Identity who, requester(request));
  PIF_TRY(check_spawn(spawn, who));
  PIF_TRY_VALUE(Job* const job, job_for(spawn.job(), request));
  if (job->killed) return fail(Code::kCancelled, fmt::format("job {:016x} was ended", job->id));
  const SpawnPart part(spawn.rank(), spawn.description_at(), spawn.program_size() == 0 ? 0 : spawn.program_at() + 1);
  if (const auto found = job->spawning.find(part);
      found != job->spawning.end()) {  // the answer goes to whoever asked last
    found->second->asker = asker_of(request);
    found->second->answered = false;
    return found->second;
  }
  PIF_TRY_VALUE(const bool is_whole,
                spawn.program_size() == 0 ? take_description(*job, spawn) : take_program(*job, request));
  const auto spawning = job->spawning[part] = std::make_shared<Spawning>();
  spawning->asker = asker_of(request);
  job->lease = std::max(job->lease, now() + kJobClaim);
  job->speaks_until = speaks_until(*job, request);
  begin_part(*job, request.envelope(), is_whole, spawning);
  return spawning;
}

// A part has come: the worker here, if that was all, and those behind it.
void WorkerHost::Impl::begin_part(Job& job, const Envelope& request, bool is_whole,
                                  const std::shared_ptr<Spawning>& spawning) {
  if (is_whole) {
    if (auto started = start_worker(job, request.spawn(), spawning); !started) {
      if (!spawning->error) spawning->error = std::move(started.error());
      return;
    }
  }
  hand_on(job, request, spawning);
}

// Adds a part of the description, which follows those that have come; whether that was the last.
Result<bool> WorkerHost::Impl::take_description(Job& job, const proto::Spawn& spawn) {
  std::string& come = job.descriptions[spawn.rank()];
  const std::size_t part = spawn.description().size();
  const std::uint64_t size = spawn.description_size() == 0 ? part : spawn.description_size();
  if (size > kWholeBytesMax) {
    return fail(Code::kTooLarge,
                fmt::format("a job's description of {} bytes; at most {} are allowed", size, kWholeBytesMax));
  }
  if (spawn.description_at() != come.size() || part > size - std::min<std::uint64_t>(size, come.size())) {
    return fail(
        Code::kInvalid,
        fmt::format("bytes {} to {} of a job's description came, where {} of {} have come: perhaps this LFS was "
                    "started again meanwhile",
                    spawn.description_at(), spawn.description_at() + part, come.size(), size));
  }
  PIF_TRY(room_for_bytes(job.uid, part));
  come += spawn.description();
  return come.size() == size;
}

// Adds a part of the program, for workers here that lack it; without one, whether it was all: the worker starts now.
Result<bool> WorkerHost::Impl::take_program(Job& job, const Request& request) {
  const proto::Spawn& spawn = request.envelope().spawn();
  if (!job.lacking.contains(spawn.rank()) || spawn.subtree_size() > 0 || spawn.description_at() != 0)
    return fail(Code::kInvalid, fmt::format("a program came for worker {}, which does not lack it", spawn.rank()));
  if (spawn.program_at() == spawn.program_size() && request.packet.body.empty()) {
    job.lacking.erase(spawn.rank());
    return true;
  }
  const std::uint64_t rest = spawn.program_size() - std::min(spawn.program_size(), spawn.program_at());
  if (request.packet.body.size() != std::min<std::uint64_t>(rest, kBulkBytes)) {  // so there are only so many of them
    return fail(Code::kInvalid, fmt::format("a program's part of {} bytes; all but the last one have {}",
                                            request.packet.body.size(), kBulkBytes));
  }
  if (spawn.program_at() == 0) {
    job.program.reset();
    PIF_TRY_VALUE(job.program, programs.begin(job.uid, spawn.build(), spawn.program_size()));
  }
  if (job.program == nullptr)
    return fail(Code::kInvalid, "a part of a program came that had not begun: perhaps this LFS was started again");
  PIF_TRY(programs.add(*job.program, spawn.program_at(), request.packet.body.span()));
  if (job.program->is_whole()) job.program.reset();
  return false;
}

Status WorkerHost::Impl::check_spawn(const proto::Spawn& spawn, const net::Identity& who) {
  if (spawn.program().empty() || spawn.program().front() != '/') {
    return fail(Code::kInvalid, fmt::format("a worker's program must be an absolute path, not '{}'", spawn.program()));
  }
  if (spawn.build().size() > kPifBuildIdBytesMax || (spawn.program_size() > 0 && spawn.build().empty()))
    return fail(Code::kInvalid, fmt::format("a program's build id of {} bytes", spawn.build().size()));
  PIF_TRY(check_grants(spawn));
  if (config.uid != 0 && who.uid != config.uid) {
    return fail(
        Code::kPermission,
        fmt::format("{} runs as uid {} without root's rights, so it can start workers of that user only, not of uid "
                    "{}: ask for the file system to be run as root, or use your own",
                    config.name, config.uid, who.uid));
  }
  return {};
}

// Whether its user may open them, and whether they are none of this LFS's, pif-exec looks at.
Status WorkerHost::Impl::check_grants(const proto::Spawn& spawn) {
  if (spawn.grants_size() > kGrantsMax)
    return fail(Code::kInvalid,
                fmt::format("{} folders are given to workers; at most {} may be", spawn.grants_size(), kGrantsMax));
  for (const auto& grant : spawn.grants()) {
    const std::string& folder = grant.folder();
    if (folder.empty() || folder.front() != '/' || folder.size() > kGrantBytesMax ||
        folder.find('\0') != std::string::npos)
      return fail(Code::kInvalid, fmt::format("a folder given to workers must be an absolute path, not '{}'", folder));
  }
  return {};
}

Result<WorkerRules> WorkerHost::Impl::rules_for(const proto::Spawn& spawn) {
  WorkerRules rules = config.worker_rules ? config.worker_rules() : WorkerRules();
  if (rules.grants || spawn.grants().empty()) return rules;
  return fail(Code::kPermission,
              fmt::format("workers are given no folders here, not {}: pif.toml says grants = \"none\", which the file "
                          "system's owner can change (pif config set grants any)",
                          spawn.grants(0).folder()),
              config.name);
}

Status WorkerHost::Impl::start_worker(Job& job, const proto::Spawn& spawn, const std::shared_ptr<Spawning>& spawning) {
  if (job.workers.size() >= kWorkersPerJobMax || live >= kWorkersMax) {
    return fail(Code::kBusy, fmt::format("{} workers run here already: try again later", live), config.name);
  }
  Spawner::Order order;
  order.program = spawn.program();
  order.build = spawn.build();
  const auto stored = programs.find(job.uid, spawn.build());
  if (stored) order.stored = &*stored;
  order.arguments.assign(spawn.arguments().begin(), spawn.arguments().end());
  order.working_folder = spawn.working_folder();
  order.uid = job.uid;
  order.gids = job.gids;
  order.scratch_folder = own_folder(config.endpoints, job.id, spawn.rank());
  PIF_TRY_VALUE(order.rules, rules_for(spawn));
  for (const auto& grant : spawn.grants()) order.grants.push_back({grant.folder(), grant.may_write()});
  auto started = world.spawner.start(order);
  if (!started) {
    Error error = started.error();
    error.text = fmt::format("cannot start worker {}: {}", spawn.rank(), error.text);
    if (error.node.empty()) error.node = config.name;
    return fail(std::move(error));
  }
  auto peer = world.messenger.adopt(std::move(started->connection));
  if (!peer) {
    world.spawner.kill(started->process);
    return fail(std::move(peer.error()));
  }
  Worker worker;
  worker.rank = spawn.rank();
  worker.process = started->process;
  worker.own_folder = order.scratch_folder;
  worker.peer = *peer;
  worker.spawning = spawning;
  ++spawning->waiting;
  PIF_ASSERT(!job_of_worker.contains(*peer) && job.workers.size() < kWorkersPerJobMax, job.workers.size());
  job.workers.push_back(worker);
  job_of_worker[*peer] = job.id;
  ++live;
  PIF_ASSERT(live <= kWorkersMax && job_of_worker.size() <= live, live);
  look_at_beginning(job, job.workers.back());
  next_poll = std::min(next_poll, now() + (job.workers.back().spawning ? kPollSoon : kPollEvery));
  return {};
}

void WorkerHost::Impl::hand_on(Job& job, const Envelope& request, const std::shared_ptr<Spawning>& spawning) {
  const auto count = static_cast<std::size_t>(request.spawn().subtree_size());
  for (const Range part : cut(count, request.spawn().fan_out())) hand_part(job, request, part, spawning);
}

void WorkerHost::Impl::hand_part(Job& job, const Envelope& request, Range part,
                                 const std::shared_ptr<Spawning>& spawning) {
  const proto::Spawn& spawn = request.spawn();
  PIF_ASSERT(part.begin < part.end && part.end <= static_cast<std::size_t>(spawn.subtree_size()), part.begin, part.end);
  const proto::SpawnNode& head = spawn.subtree(static_cast<int>(part.begin));
  net::Packet packet;
  proto::Spawn& onward = *packet.envelope.mutable_spawn();
  onward.set_job(spawn.job());
  onward.set_program(spawn.program());
  onward.set_build(spawn.build());
  *onward.mutable_arguments() = spawn.arguments();
  onward.set_rank(head.rank());
  onward.set_fan_out(spawn.fan_out());
  onward.set_description(spawn.description());
  onward.set_description_at(spawn.description_at());
  onward.set_description_size(spawn.description_size());
  onward.set_working_folder(spawn.working_folder());
  *onward.mutable_grants() = spawn.grants();
  for (auto i = part.begin + 1; i < part.end; ++i) *onward.add_subtree() = spawn.subtree(static_cast<int>(i));
  // Another worker here, which does what an absent LFS's would.
  if (head.node().id() == config.node && head.node().name() == config.name) {
    packet.envelope.set_timeout_ms(request.timeout_ms());
    return hand_to_self(job, packet.envelope, spawning);
  }
  Credential speaker;
  speaker.uid = job.uid;
  speaker.gids = job.gids;
  speaker.expiry = job.speaks_until;
  packet.envelope.set_credential(mint(config.key, speaker));

  auto peer = world.messenger.connect(head.node().endpoints(), net::Route::kAuto);
  if (!peer) {
    Error error = peer.error();
    if (error.node.empty()) error.node = head.node().name();
    if (!spawning->error) spawning->error = std::move(error);
    return;
  }
  const Duration timeout = request.timeout_ms() > 0 ? milliseconds(request.timeout_ms()) : kSpawnTimeout;
  ++spawning->waiting;
  const std::string& name = head.node().name();
  calls.start(*peer, std::move(packet), timeout, name, [this, spawning, name](Result<net::Packet> answer) {
    PIF_ASSERT(spawning->waiting > 0);
    --spawning->waiting;
    if (!answer && answer.error().node.empty()) answer.error().node = name;  // it did not answer
    if (!answer && !spawning->error) spawning->error = answer.error();
    if (answer) spawning->add(answer->envelope.spawn_reply());
    if (spawning->waiting == 0 || spawning->error) answer_spawn(*spawning);
  });
}

void WorkerHost::Impl::hand_to_self(Job& job, const Envelope& request, const std::shared_ptr<Spawning>& spawning) {
  PIF_ASSERT(request.has_spawn() && spawning != nullptr, job.id);
  auto whole = take_description(job, request.spawn());
  if (whole) return begin_part(job, request, *whole, spawning);
  if (!spawning->error) spawning->error = std::move(whole.error());
}

void WorkerHost::Impl::answer_spawn(Spawning& spawning) {
  if (std::exchange(spawning.answered, true)) return;
  if (spawning.error) {
    // The node that failed speaks, not the one that hands its words on.
    const std::string_view node = spawning.error->node.empty() ? std::string_view(config.name) : spawning.error->node;
    return reply(spawning.asker, net::error_reply(spawning.asker.request, *spawning.error, node));
  }
  net::Packet packet = net::reply_to(spawning.asker.request);
  proto::SpawnReply& answer = *packet.envelope.mutable_spawn_reply();
  answer.set_started(spawning.started);
  answer.mutable_lacking()->Add(spawning.lacking.begin(), spawning.lacking.end());
  reply(spawning.asker, std::move(packet));
}

// ---- waiting and killing ------------------------------------------------------------------------------------------

void WorkerHost::Impl::wait(const Request& request, const proto::JobWait& asked) {
  const Asker asker = asker_of(request);
  auto found = job_for(asked.job(), request);
  if (!found) return refuse(asker, found.error());
  Job& job = **found;
  if (job.killed) return refuse(asker, Error{Code::kCancelled, fmt::format("job {:016x} was ended", job.id), {}});
  if (asked.started() && job.descriptions.empty()) {
    return refuse(asker, Error{Code::kCancelled,
                               fmt::format("job {:016x} is not known here any more: its controller was silent "
                                           "for too long, or this LFS was started again",
                                           job.id),
                               {}});
  }
  if (job.wait) answer_wait(job);  // a newer wait replaces an older one
  job.controller = request.peer;
  // A controller that is stopped can go on: where the transport tells of its end, nothing else ends its job.
  const bool is_told = tells_end(world.messenger.identity(request.peer));
  job.lease = is_told ? kNever : now() + kJobLease;
  while (!job.events.empty() && job.events.front().number() <= asked.seen()) job.events.pop_front();
  job.wait = Wait{asker, now() + std::min<Duration>(milliseconds(asked.hold_ms()), is_told ? kHoldMax : kJobHold),
                  asked.seen()};
  take_rooms(job, asked);
  if (!job.events.empty() || job.has_stream()) answer_wait(job);
}

void WorkerHost::Impl::kill(const Request& request, const proto::JobKill& asked) {
  const Asker asker = asker_of(request);
  // A job that is not known yet is remembered as killed: its spawn may still be on the way.
  auto found = job_for(asked.job(), request);
  if (!found) return refuse(asker, found.error());
  kill_job(**found, "its controller ended it");
  reply_done(asker);
}

void WorkerHost::Impl::meet(const Request& request, const proto::JobMeet& asked) {
  const Asker asker = asker_of(request);
  auto found = job_for(asked.job(), request);
  if (!found) return refuse(asker, found.error());
  Job& job = **found;
  job.met.emplace().set_met(true);
  *job.met->mutable_values() = asked.values();
  answer_meetings(job);
  reply_done(asker);
}

void WorkerHost::Impl::add_event(Job& job, proto::JobWaitReply::Event event) {
  if (event.what_case() == proto::JobWaitReply::Event::kProgress) {  // only the latest of a worker counts
    std::erase_if(job.events, [&](const auto& old) {
      return old.rank() == event.rank() && old.what_case() == proto::JobWaitReply::Event::kProgress;
    });
  }
  event.set_number(++job.last_number);
  PIF_ASSERT(job.events.empty() || job.events.back().number() < event.number(), job.last_number);
  job.events.push_back(std::move(event));
  if (job.wait) answer_wait(job);
}

void WorkerHost::Impl::answer_wait(Job& job) {
  PIF_ASSERT(job.wait, job.id);
  net::Packet packet = net::reply_to(job.wait->asker.request);
  proto::JobWaitReply& answer = *packet.envelope.mutable_job_wait_reply();
  std::size_t bytes = 0;
  for (const auto& event : job.events) {
    bytes += event.ByteSizeLong();
    if (bytes > kReplyBytesMax && answer.events_size() > 0) break;
    *answer.add_events() = event;
  }
  const bool told_events = answer.events_size() == static_cast<int>(job.events.size());
  const bool told_all = add_streams(job, kReplyBytesMax - std::min(bytes, kReplyBytesMax), answer) && told_events;
  // Over ZeroMQ the answer may be lost, and asked for again.
  if (told_all && job.is_over() && !job.killed) job.lease = now() + (job.lease == kNever ? kJobOver : kJobClaim);
  reply(job.wait->asker, std::move(packet));
  job.wait.reset();
}

// ---- the host -----------------------------------------------------------------------------------------------------

WorkerHost::WorkerHost(const Config& config, World world, Send send, Operations& operations)
    : impl_(std::make_unique<Impl>(config, world, std::move(send))) {
  impl_->bind(operations);
  impl_->bind_workers(operations);
}

// Who may use a job, the job says.
void WorkerHost::Impl::bind(Operations& operations) {
  operations.bind<&Impl::spawn>(*this);
  operations.bind<&Impl::wait>(*this);
  operations.bind<&Impl::kill>(*this);
  operations.bind<&Impl::meet>(*this);
}

WorkerHost::~WorkerHost() {
  for (auto& [id, job] : impl_->jobs) {
    for (auto& worker : job.workers) {
      if (!worker.gone) impl_->world.spawner.kill(worker.process);
    }
  }
}

bool WorkerHost::offer(net::Delivery& delivery) {
  if (delivery.kind == net::Delivery::Kind::kClosed) {
    const bool ours = impl_->on_closed(delivery.peer);
    (void)impl_->calls.offer(delivery);  // fails what waits for this peer
    return ours;                         // others must hear of a closed peer that is no worker
  }
  if (delivery.kind != net::Delivery::Kind::kPacket || !net::is_reply(delivery.packet.envelope)) return false;
  return delivery.packet.envelope.id() >= kFirstCall && impl_->calls.offer(delivery);
}

void WorkerHost::tick() {
  Impl& host = *impl_;
  const Time now = host.now();
  host.calls.expire();
  if (now >= host.next_poll) host.poll_workers();
  for (auto it = host.jobs.begin(); it != host.jobs.end();) {
    Job& job = it->second;
    if (job.wait && now >= job.wait->deadline) host.answer_wait(job);
    if (now >= job.meeting_until) host.answer_meetings(job);
    if (now >= job.streaming_until) host.answer_streaming(job);
    if (now >= job.lease && !job.killed && !job.is_over()) host.kill_job(job, "its controller fell silent");
    it = now >= job.lease && !job.has_live_workers() ? host.jobs.erase(it) : std::next(it);
  }
}

Time WorkerHost::next_deadline() const {
  Time next = std::min(impl_->next_poll, impl_->calls.next_deadline());
  for (const auto& [id, job] : impl_->jobs) {
    next = std::min(next, job.lease);
    if (job.wait) next = std::min(next, job.wait->deadline);
    next = std::min({next, job.meeting_until, job.streaming_until});
  }
  return next;
}

std::optional<WorkerIdentity> WorkerHost::identity_of(net::PeerId peer) const {
  const auto known = impl_->job_of_worker.find(peer);
  if (known == impl_->job_of_worker.end()) return std::nullopt;
  const Job& job = impl_->jobs.at(known->second);
  WorkerIdentity worker{impl_->world.messenger.identity(peer), job.since};
  worker.identity.has_uid = true;
  worker.identity.uid = job.uid;
  worker.identity.gids = job.gids;
  return worker;
}

}  // namespace pif::lfs
