// The inside of the worker host. worker_host.cc has jobs and who asks about them, workers.cc what workers say and their
// processes.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "pif/base/timers.h"
#include "pif/net/calls.h"
#include "store/root.h"
#include "workers/jobs.h"
#include "workers/worker_host.h"

namespace pif::lfs {

inline constexpr std::size_t kPartBytesMax = 64u << 10;   // of a description or a result, in one message
inline constexpr std::size_t kWholeBytesMax = 20u << 20;  // of a description, or of one worker's result
inline constexpr std::size_t kStreamBytesMax = 1u << 20;  // of one worker, kept for its controller
// What workers write on stdout and stderr goes to the controller: so much of one at a poll, which makes some 1 MiB a
// second; in one event; and what is kept of it until the controller has seen it.
inline constexpr std::size_t kSaidAtOnce = 100u << 10;
inline constexpr std::size_t kSaidPartMax = 32u << 10;
inline constexpr std::size_t kSaidKeptMax = 1u << 20;
inline constexpr Duration kPollEvery = std::chrono::milliseconds(100);  // of processes whose connection is open
inline constexpr Duration kPollSoon = std::chrono::milliseconds(1);     // of those that begin, or are ending
inline constexpr net::CallId kFirstCall = net::CallId{1}
                                          << 62;  // so that no other Calls of this daemon has the same ids

struct WorkerHost::Impl {
  Impl(const Config& c, World w, Send s)
      : config(c),
        world(w),
        send(std::move(s)),
        calls(w.messenger, kFirstCall),
        programs(w.storage, w.messenger.clock(), programs_folder(c.root)) {}

  const Config& config;
  World world;
  Send send;
  net::Calls calls;
  Programs programs;  // before jobs, which bring them
  std::map<std::uint64_t, Job> jobs;
  std::unordered_map<net::PeerId, std::uint64_t> job_of_worker;  // by its connection
  std::size_t live = 0;                                          // worker processes
  Time next_poll = kNever;
  std::deque<std::string> left_folders;  // of workers that have ended; the first is being removed

  Time now() { return world.messenger.clock().now(); }

  // ---- who asks ----
  Result<net::Identity> requester(const Request& request);
  std::int64_t speaks_until(const Job& job, const Request& request);
  Status may_use(const Job& job, const Request& request);
  Result<Job*> job_for(std::uint64_t id, const Request& request);
  Status room_for_job(std::uint32_t uid);
  Status room_for_bytes(std::uint32_t uid, std::size_t bytes);

  // ---- operations ----
  void bind(Operations& operations);
  void bind_workers(Operations& operations);
  void spawn(const Request& request, const proto::Spawn& spawn);
  Result<std::shared_ptr<Spawning>> begin_spawn(const Request& request, const proto::Spawn& spawn);
  Status check_spawn(const proto::Spawn& spawn, const net::Identity& who);
  Status check_grants(const proto::Spawn& spawn);
  Result<WorkerRules> rules_for(const proto::Spawn& spawn);
  Result<bool> take_description(Job& job, const proto::Spawn& spawn);
  Result<bool> take_program(Job& job, const Request& request);
  Status start_worker(Job& job, const proto::Spawn& spawn, const std::shared_ptr<Spawning>& spawning);
  void begin_part(Job& job, const proto::Envelope& request, bool is_whole, const std::shared_ptr<Spawning>& spawning);
  void hand_on(Job& job, const proto::Envelope& request, const std::shared_ptr<Spawning>& spawning);
  void hand_part(Job& job, const proto::Envelope& request, Range part, const std::shared_ptr<Spawning>& spawning);
  void hand_to_self(Job& job, const proto::Envelope& request, const std::shared_ptr<Spawning>& spawning);
  void answer_spawn(Spawning& spawning);
  void wait(const Request& request, const proto::JobWait& asked);
  void kill(const Request& request, const proto::JobKill& asked);
  void meet(const Request& request, const proto::JobMeet& asked);
  // ---- of workers ----
  struct Speaker {
    Job& job;
    Worker& worker;
  };
  // Nothing, and kPermission as the answer, for who is no worker of this LFS.
  std::optional<Speaker> speaker_of(const Request& request);
  void worker_start(const Request& request, const proto::WorkerStart& asked);
  void worker_progress(const Request& request, const proto::WorkerProgress& asked);
  void worker_result(const Request& request, const proto::WorkerResult& asked);
  void worker_stream(const Request& request, const proto::WorkerStream& asked);
  void worker_scratch(const Request& request, const proto::WorkerScratch& asked);
  void worker_meet(const Request& request, const proto::WorkerMeet& asked);
  bool fits(const Asker& asker, const std::string& result);
  Status check_result(const Job& job, const Worker& worker, std::size_t bytes);
  void answer_meetings(Job& job);
  void answer_streaming(Job& job);
  void take_rooms(Job& job, const proto::JobWait& asked);
  // At most so many bytes; whether that is all there is.
  static bool add_streams(Job& job, std::size_t bytes_max, proto::JobWaitReply& answer);
  bool on_closed(net::PeerId peer);

  // ---- events ----
  void add_event(Job& job, proto::JobWaitReply::Event event);
  void answer_wait(Job& job);

  // ---- processes ----
  void look_at_beginning(Job& job, Worker& worker);
  void settle_beginning(Job& job, Worker& worker, bool lacks);
  void poll_workers();
  bool poll_worker(Job& job, Worker& worker);
  void pass_words(Job& job, Worker& worker);
  void add_words(Job& job, std::uint32_t rank, std::string_view words);
  void remove_folder(std::string path);
  void remove_next_folder();
  void kill_job(Job& job, std::string_view why);

  void reply_done(const Asker& asker) {
    net::Packet packet = net::reply_to(asker.request);
    packet.envelope.mutable_done();
    reply(asker, std::move(packet));
  }
  void reply(const Asker& asker, net::Packet packet) {
    send(asker.peer, std::move(packet), asker.operation, asker.arrived);
  }
  void refuse(const Asker& asker, const Error& error) {
    reply(asker, net::error_reply(asker.request, error, config.name));
  }
  // One of those in job_of_worker.
  Worker& worker_at(Job& job, net::PeerId peer) {
    return *std::find_if(job.workers.begin(), job.workers.end(),
                         [peer](const Worker& worker) { return worker.peer == peer; });
  }
};

}  // namespace pif::lfs
