// The inside of the worker host. worker_host.cc has jobs and who asks about them, workers.cc what workers say and their
// processes.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "pif/base/timers.h"
#include "store/root.h"
#include "workers/jobs.h"
#include "workers/worker_host.h"

namespace pif::lfs {

inline constexpr std::size_t kPartBytesMax = 64u << 10;   // of a description or a result, in one message
inline constexpr std::size_t kWholeBytesMax = 20u << 20;  // of a description, or of one worker's result
inline constexpr std::size_t kStreamBytesMax = 1u << 20;  // of one worker, kept for its controller
// The controller gets what workers write on stdout and stderr. These bound what is taken of one at a poll, which makes
// some 1 MiB a second; what is in one event; and what is kept until the controller has seen it.
inline constexpr std::size_t kSaidAtOnce = 100u << 10;
inline constexpr std::size_t kSaidPartMax = 32u << 10;
inline constexpr std::size_t kSaidKeptMax = 1u << 20;
inline constexpr Duration kPollEvery = std::chrono::milliseconds(100);  // of processes whose connection is open
inline constexpr Duration kPollSoon = std::chrono::milliseconds(1);     // of those that begin, or are ending

struct WorkerHost::Impl {
  Impl(const Config& c, World w, daemon::Fibers& f, daemon::Caller& calls, OnGone gone)
      : config(c),
        world(w),
        fibers(f),
        caller(calls),
        on_gone(std::move(gone)),
        news(f),
        programs(w.storage, w.messenger.clock(), programs_folder(c.root)) {}

  const Config& config;
  World world;
  daemon::Fibers& fibers;
  daemon::Caller& caller;
  const OnGone on_gone;
  daemon::Event news;  // something is due earlier than it was
  Programs programs;   // before jobs, which bring them
  std::map<std::uint64_t, JobPtr> jobs;
  std::unordered_map<net::PeerId, std::uint64_t> job_of_worker;  // by its connection
  std::size_t live = 0;                                          // worker processes
  Time next_poll = kNever;
  std::deque<std::string> left_folders;  // of workers that have ended
  bool is_removing = false;              // the first of them

  Time now() { return world.messenger.clock().now(); }

  // ---- who asks ----
  Result<net::Identity> requester(const Request& request);
  std::int64_t speaks_until(const Job& job, const Request& request);
  Status may_use(const Job& job, const Request& request);
  Result<JobPtr> job_for(std::uint64_t id, const Request& request);
  Status room_for_job(std::uint32_t uid);
  Status room_for_bytes(std::uint32_t uid, std::size_t bytes);

  // ---- operations ----
  void bind(Operations& operations);
  void bind_workers(Operations& operations);
  [[nodiscard]] Result<net::Packet> spawn(const Request& request, const proto::Spawn& spawn);
  [[nodiscard]] Result<SpawningPtr> begin_spawn(const Request& request, const proto::Spawn& spawn);
  Status check_spawn(const proto::Spawn& spawn, const net::Identity& who);
  Status check_grants(const proto::Spawn& spawn);
  Result<WorkerRules> rules_for(const proto::Spawn& spawn);
  Result<bool> take_description(Job& job, const proto::Spawn& spawn);
  Result<bool> take_program(Job& job, const Request& request);
  Status start_worker(Job& job, const proto::Spawn& spawn, const SpawningPtr& spawning);
  void begin_part(Job& job, const proto::Envelope& request, bool is_whole, const SpawningPtr& spawning);
  void hand_on(Job& job, const proto::Envelope& request, const SpawningPtr& spawning);
  net::Packet packet_for(const Job& job, const proto::Spawn& spawn, Range part) const;
  // On a fiber for each part.
  void hand_part(const SpawningPtr& spawning, const proto::NodeInfo& node, const std::shared_ptr<net::Packet>& packet,
                 Duration timeout);
  [[nodiscard]] Result<proto::SpawnReply> ask_to_spawn(const proto::NodeInfo& node, net::Packet packet,
                                                       Duration timeout);
  void hand_to_self(Job& job, const proto::Envelope& request, const SpawningPtr& spawning);
  [[nodiscard]] Result<net::Packet> wait(const Request& request, const proto::JobWait& asked);
  [[nodiscard]] Status kill(const Request& request, const proto::JobKill& asked);
  [[nodiscard]] Status meet(const Request& request, const proto::JobMeet& asked);
  // ---- of workers ----
  struct Speaker {
    JobPtr job;
    Worker& worker;
  };
  // kPermission: it is no worker of this LFS. The worker that it refers to may be gone after a wait.
  [[nodiscard]] Result<Speaker> speaker_of(const Request& request);
  [[nodiscard]] Result<net::Packet> worker_start(const Request& request, const proto::WorkerStart& asked);
  // Nothing: it gets no answer.
  [[nodiscard]] std::optional<Status> worker_progress(const Request& request, const proto::WorkerProgress& asked);
  [[nodiscard]] Status worker_result(const Request& request, const proto::WorkerResult& asked);
  [[nodiscard]] Result<net::Packet> worker_stream(const Request& request, const proto::WorkerStream& asked);
  [[nodiscard]] Result<net::Packet> worker_scratch(const Request& request, const proto::WorkerScratch& asked);
  [[nodiscard]] Result<net::Packet> worker_meet(const Request& request, const proto::WorkerMeet& asked);
  [[nodiscard]] Status check_result(const Job& job, const Worker& worker, std::size_t bytes);
  void take_rooms(Job& job, const proto::JobWait& asked);
  // At most so many bytes; whether that is all there is.
  static bool add_streams(Job& job, std::size_t bytes_max, proto::JobWaitReply& answer);
  void closed(net::PeerId peer);

  // ---- events ----
  void add_event(Job& job, proto::JobWaitReply::Event event);
  net::Packet take_events(const Request& request, Job& job);

  // ---- processes ----
  void look_at_beginning(Job& job, Worker& worker);
  void settle_beginning(Job& job, Worker& worker, bool lacks);
  void poll_workers();
  bool poll_worker(Job& job, Worker& worker);
  void pass_words(Job& job, Worker& worker);
  void add_words(Job& job, std::uint32_t rank, std::string_view words);
  void remove_folder(std::string path);
  void remove_folders();
  void kill_job(Job& job, std::string_view why);

  // ---- what has its time ----
  void serve();
  Time next_deadline() const;
  void set_lease(Job& job, Time until);
  void poll_by(Time time);
  void end_silent_jobs();

  // It is none of a worker any more.
  void forget_peer(net::PeerId peer);
  // One of those in job_of_worker.
  Worker& worker_at(Job& job, net::PeerId peer) {
    return *std::find_if(job.workers.begin(), job.workers.end(),
                         [peer](const Worker& worker) { return worker.peer == peer; });
  }
};

}  // namespace pif::lfs
