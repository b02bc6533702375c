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
Result<JobPtr> WorkerHost::Impl::job_for(std::uint64_t id, const Request& request) {
  if (const auto found = jobs.find(id); found != jobs.end()) {
    PIF_TRY(may_use(*found->second, request));
    return found->second;
  }
  PIF_TRY_VALUE(const net::Identity who, requester(request));
  PIF_TRY(room_for_job(who.uid));
  const JobPtr job = jobs[id] = std::make_shared<Job>(fibers);
  job->id = id;
  job->uid = who.uid;
  job->gids = who.gids;
  job->since = world.messenger.clock().wall_seconds();
  set_lease(*job, now() + kJobClaim);
  return job;
}

// Jobs that were ended, or only waited for, count too, as long as they are remembered.
Status WorkerHost::Impl::room_for_job(std::uint32_t uid) {
  if (jobs.size() >= kJobsMax) {
    return fail(Code::kBusy, fmt::format("{} jobs run here already, which is the limit: try again later", kJobsMax));
  }
  const auto of_user =
      std::count_if(jobs.begin(), jobs.end(), [uid](const auto& job) { return job.second->uid == uid; });
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
    const std::uint64_t kept = job->kept_bytes();
    all += kept;
    if (job->uid == uid) of_user += kept;
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

// Waits until the worker here has begun, and all others have; the first error ends it. The same asked again waits, too.
Result<net::Packet> WorkerHost::Impl::spawn(const Request& request, const proto::Spawn& spawn) {
  PIF_TRY_VALUE(const SpawningPtr spawning, begin_spawn(request, spawn));
  while (!spawning->is_over()) spawning->news.wait();
  if (spawning->error) return fail(*spawning->error);
  net::Packet packet = Replies::reply(request);
  proto::SpawnReply& answer = *packet.envelope.mutable_spawn_reply();
  answer.set_started(spawning->started);
  answer.mutable_lacking()->Add(spawning->lacking.begin(), spawning->lacking.end());
  return packet;
}

Result<SpawningPtr> WorkerHost::Impl::begin_spawn(const Request& request, const proto::Spawn& spawn) {
  PIF_TRY_VALUE(const net::Identity who, requester(request));
  PIF_TRY(check_spawn(spawn, who));
  PIF_TRY_VALUE(const JobPtr job, job_for(spawn.job(), request));
  if (job->killed) return fail(Code::kCancelled, fmt::format("job {:016x} was ended", job->id));
  const SpawnPart part(spawn.rank(), spawn.description_at(), spawn.program_size() == 0 ? 0 : spawn.program_at() + 1);
  if (const auto found = job->spawning.find(part); found != job->spawning.end()) return found->second;
  PIF_TRY_VALUE(const bool is_whole,
                spawn.program_size() == 0 ? take_description(*job, spawn) : take_program(*job, request));
  const SpawningPtr spawning = job->spawning[part] = std::make_shared<Spawning>(fibers);
  set_lease(*job, std::max(job->lease, now() + kJobClaim));
  job->speaks_until = speaks_until(*job, request);
  begin_part(*job, request.envelope(), is_whole, spawning);
  return spawning;
}

// A part has come: the worker here, if that was all, and those behind it.
void WorkerHost::Impl::begin_part(Job& job, const Envelope& request, bool is_whole, const SpawningPtr& spawning) {
  if (is_whole) {
    if (auto started = start_worker(job, request.spawn(), spawning); !started) {
      spawning->fail_with(std::move(started.error()));
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

Status WorkerHost::Impl::start_worker(Job& job, const proto::Spawn& spawn, const SpawningPtr& spawning) {
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
  poll_by(now() + (job.workers.back().spawning ? kPollSoon : kPollEvery));
  return {};
}

// Each part on a fiber of its own.
void WorkerHost::Impl::hand_on(Job& job, const Envelope& request, const SpawningPtr& spawning) {
  const proto::Spawn& spawn = request.spawn();
  for (const Range part : cut(static_cast<std::size_t>(spawn.subtree_size()), spawn.fan_out())) {
    const proto::NodeInfo& node = spawn.subtree(static_cast<int>(part.begin)).node();
    net::Packet packet = packet_for(job, spawn, part);
    // Another worker here, which does what an absent LFS's would.
    if (node.id() == config.node && node.name() == config.name) {
      packet.envelope.set_timeout_ms(request.timeout_ms());
      hand_to_self(job, packet.envelope, spawning);
      continue;
    }
    const Duration timeout = request.timeout_ms() > 0 ? milliseconds(request.timeout_ms()) : kSpawnTimeout;
    ++spawning->waiting;
    fibers.start<&Impl::hand_part>(*this, spawning, node, std::make_shared<net::Packet>(std::move(packet)), timeout);
  }
}

void WorkerHost::Impl::hand_part(const SpawningPtr& spawning, const proto::NodeInfo& node,
                                 const std::shared_ptr<net::Packet>& packet, Duration timeout) {
  auto reply = ask_to_spawn(node, std::move(*packet), timeout);
  if (!reply && reply.error().node.empty()) reply.error().node = node.name();  // it did not answer
  if (reply) spawning->add(*reply);
  if (!reply) spawning->fail_with(std::move(reply.error()));
  spawning->end_part();
}

net::Packet WorkerHost::Impl::packet_for(const Job& job, const proto::Spawn& spawn, Range part) const {
  PIF_ASSERT(part.begin < part.end && part.end <= static_cast<std::size_t>(spawn.subtree_size()), part.begin, part.end);
  net::Packet packet;
  proto::Spawn& onward = *packet.envelope.mutable_spawn();
  onward.set_job(spawn.job());
  onward.set_program(spawn.program());
  onward.set_build(spawn.build());
  *onward.mutable_arguments() = spawn.arguments();
  onward.set_rank(spawn.subtree(static_cast<int>(part.begin)).rank());
  onward.set_fan_out(spawn.fan_out());
  onward.set_description(spawn.description());
  onward.set_description_at(spawn.description_at());
  onward.set_description_size(spawn.description_size());
  onward.set_working_folder(spawn.working_folder());
  *onward.mutable_grants() = spawn.grants();
  for (auto i = part.begin + 1; i < part.end; ++i) *onward.add_subtree() = spawn.subtree(static_cast<int>(i));
  Credential speaker;
  speaker.uid = job.uid;
  speaker.gids = job.gids;
  speaker.expiry = job.speaks_until;
  packet.envelope.set_credential(mint(config.key, speaker));
  return packet;
}

Result<proto::SpawnReply> WorkerHost::Impl::ask_to_spawn(const proto::NodeInfo& node, net::Packet packet,
                                                         Duration timeout) {
  PIF_TRY_VALUE(const net::PeerId peer, world.messenger.connect(node.endpoints(), net::Route::kAuto));
  PIF_TRY_VALUE(const net::Packet reply, caller.call(peer, std::move(packet), timeout, node.name()));
  return reply.envelope.spawn_reply();
}

void WorkerHost::Impl::hand_to_self(Job& job, const Envelope& request, const SpawningPtr& spawning) {
  PIF_ASSERT(request.has_spawn() && spawning != nullptr, job.id);
  auto whole = take_description(job, request.spawn());
  if (whole) return begin_part(job, request, *whole, spawning);
  spawning->fail_with(std::move(whole.error()));
}

// ---- waiting and killing ------------------------------------------------------------------------------------------

// Waits for something to tell, for a while.
Result<net::Packet> WorkerHost::Impl::wait(const Request& request, const proto::JobWait& asked) {
  PIF_TRY_VALUE(const JobPtr job, job_for(asked.job(), request));
  if (job->killed) return fail(Code::kCancelled, fmt::format("job {:016x} was ended", job->id));
  if (asked.started() && job->descriptions.empty())
    return fail(Code::kCancelled, fmt::format("job {:016x} is not known here any more: its controller was silent "
                                              "for too long, or this LFS was started again",
                                              job->id));
  const std::uint64_t number = ++job->last_wait;
  job->news.notify();
  job->controller = request.peer;
  // A controller that is stopped can go on: where the transport tells of its end, nothing else ends its job.
  const bool is_told = tells_end(world.messenger.identity(request.peer));
  set_lease(*job, is_told ? kNever : now() + kJobLease);
  while (!job->events.empty() && job->events.front().number() <= asked.seen()) job->events.pop_front();
  take_rooms(*job, asked);
  const Time until = now() + std::min<Duration>(milliseconds(asked.hold_ms()), is_told ? kHoldMax : kJobHold);
  const auto has_news = [&] { return !job->events.empty() || job->has_stream() || job->killed; };
  while (!has_news() && job->last_wait == number && now() < until) job->news.wait(until);
  if (job->last_wait == number) return take_events(request, *job);
  net::Packet nothing = Replies::reply(request);  // what there is, is for the newer one
  nothing.envelope.mutable_job_wait_reply();
  return nothing;
}

// A job that is not known yet is remembered as killed: its spawn may still be on the way.
Status WorkerHost::Impl::kill(const Request& request, const proto::JobKill& asked) {
  PIF_TRY_VALUE(const JobPtr job, job_for(asked.job(), request));
  kill_job(*job, "its controller ended it");
  return {};
}

Status WorkerHost::Impl::meet(const Request& request, const proto::JobMeet& asked) {
  PIF_TRY_VALUE(const JobPtr job, job_for(asked.job(), request));
  job->met.emplace().set_met(true);
  *job->met->mutable_values() = asked.values();
  job->meeting.notify();
  return {};
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
  job.news.notify();
}

net::Packet WorkerHost::Impl::take_events(const Request& request, Job& job) {
  net::Packet packet = Replies::reply(request);
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
  if (told_all && job.is_over() && !job.killed) set_lease(job, now() + (job.lease == kNever ? kJobOver : kJobClaim));
  return packet;
}

// ---- the host -----------------------------------------------------------------------------------------------------

WorkerHost::WorkerHost(const Config& config, World world, daemon::Fibers& fibers, daemon::Caller& caller,
                       Operations& operations, OnGone on_gone)
    : impl_(std::make_unique<Impl>(config, world, fibers, caller, std::move(on_gone))) {
  impl_->bind(operations);
  impl_->bind_workers(operations);
  fibers.start<&Impl::serve>(*impl_);
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
    for (auto& worker : job->workers) {
      if (!worker.gone) impl_->world.spawner.kill(worker.process);
    }
  }
}

void WorkerHost::closed(net::PeerId peer) { impl_->closed(peer); }

void WorkerHost::Impl::serve() {
  for (;;) {
    news.wait(next_deadline());
    if (now() >= next_poll) poll_workers();
    end_silent_jobs();
  }
}

// A job is forgotten when nobody has asked about it for long enough, and it has no workers.
void WorkerHost::Impl::end_silent_jobs() {
  for (auto& [id, job] : jobs)
    if (now() >= job->lease && !job->killed && !job->is_over()) kill_job(*job, "its controller fell silent");
  std::erase_if(jobs, [&](const auto& job) { return now() >= job.second->lease && !job.second->has_live_workers(); });
}

Time WorkerHost::Impl::next_deadline() const {
  Time next = next_poll;
  for (const auto& [id, job] : jobs) {
    if (job->lease > world.messenger.clock().now() || !job->has_live_workers()) next = std::min(next, job->lease);
  }
  return next;
}

void WorkerHost::Impl::set_lease(Job& job, Time until) {
  job.lease = until;
  news.notify();
}

void WorkerHost::Impl::poll_by(Time time) {
  if (time >= next_poll) return;
  next_poll = time;
  news.notify();
}

std::optional<WorkerIdentity> WorkerHost::identity_of(net::PeerId peer) const {
  const auto known = impl_->job_of_worker.find(peer);
  if (known == impl_->job_of_worker.end()) return std::nullopt;
  const Job& job = *impl_->jobs.at(known->second);
  WorkerIdentity worker{impl_->world.messenger.identity(peer), job.since};
  worker.identity.has_uid = true;
  worker.identity.uid = job.uid;
  worker.identity.gids = job.gids;
  return worker;
}

}  // namespace pif::lfs
