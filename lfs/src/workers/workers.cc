// What workers say to their LFS, and what becomes of their processes.
#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/path.h"
#include "store/root.h"
#include "workers/worker_host_impl.h"

namespace pif::lfs {
namespace {

constexpr Duration kTombstone = std::chrono::seconds(10);           // a killed job's spawn may still be on its way
constexpr Duration kExitPatience = std::chrono::milliseconds(500);  // a worker that hung up must be gone by then
constexpr std::size_t kMeetBytesMax = 1024;                         // of one worker

Status check_part(const std::string& result) {
  if (result.size() <= kPartBytesMax) return {};
  return fail(Code::kTooLarge, fmt::format("{} bytes of a worker's result in one message; at most {} are allowed",
                                           result.size(), kPartBytesMax));
}

// Of one that failed: its last words are sent with how it ended.
std::string_view without_last_line(std::string_view words) {
  while (words.ends_with('\n')) words.remove_suffix(1);
  return words.substr(0, words.rfind('\n') + 1);
}

}  // namespace

// ---- workers' own requests ----------------------------------------------------------------------------------------

void WorkerHost::Impl::bind_workers(Operations& operations) {
  operations.bind<&Impl::worker_start>(*this);
  operations.bind<&Impl::worker_progress>(*this);
  operations.bind<&Impl::worker_result>(*this);
  operations.bind<&Impl::worker_stream>(*this);
  operations.bind<&Impl::worker_scratch>(*this);
  operations.bind<&Impl::worker_meet>(*this);
}

Result<WorkerHost::Impl::Speaker> WorkerHost::Impl::speaker_of(const Request& request) {
  const auto known = job_of_worker.find(request.peer);
  if (known == job_of_worker.end()) return fail(Code::kPermission, "only a worker that this LFS started may ask this");
  const JobPtr& job = jobs.at(known->second);
  return Speaker{job, worker_at(*job, request.peer)};
}

// Results are kept until the controller has them.
Status WorkerHost::Impl::check_result(const Job& job, const Worker& worker, std::size_t bytes) {
  if (worker.has_result) return fail(Code::kInvalid, "a worker has one result, and this one has given it");
  if (worker.result_bytes + bytes > kWholeBytesMax)
    return fail(Code::kTooLarge, fmt::format("a worker's result of more than {} bytes", kWholeBytesMax));
  return room_for_bytes(job.uid, bytes);
}

// For its controller.
std::optional<Status> WorkerHost::Impl::worker_progress(const Request& request, const proto::WorkerProgress& asked) {
  const auto speaker = speaker_of(request);
  if (!speaker) return fail(speaker.error());
  if (auto fits = check_part(asked.progress()); !fits) return fits;
  proto::JobWaitReply::Event event;
  event.set_rank(speaker->worker.rank);
  event.set_progress(asked.progress());
  add_event(*speaker->job, std::move(event));
  return std::nullopt;
}

// For its controller.
Status WorkerHost::Impl::worker_result(const Request& request, const proto::WorkerResult& asked) {
  PIF_TRY_VALUE(const Speaker speaker, speaker_of(request));
  auto& [job, worker] = speaker;
  PIF_TRY(check_part(asked.result()));
  PIF_TRY(check_result(*job, worker, asked.result().size()));
  if (worker.result_bytes == 0) pass_words(*job, worker);  // before it: with a failure the controller hears no more
  worker.result_bytes += asked.result().size();
  worker.has_result = !asked.more();
  proto::JobWaitReply::Event event;
  event.set_rank(worker.rank);
  event.set_result(asked.result());
  event.set_more(asked.more());
  add_event(*job, std::move(event));
  return {};
}

// For its controller, which says how much it takes: a worker that is ahead waits for a while, and then asks again.
Result<net::Packet> WorkerHost::Impl::worker_stream(const Request& request, const proto::WorkerStream& asked) {
  PIF_TRY(check_part(asked.bytes()));
  PIF_TRY_VALUE(const JobPtr job, speaker_of(request).transform([](const Speaker& speaker) { return speaker.job; }));
  net::Packet packet = Replies::reply(request);
  proto::WorkerStreamReply& answer = *packet.envelope.mutable_worker_stream_reply();
  for (const Time until = now() + kJobHoldMax;; job->room.wait(until)) {
    PIF_TRY_VALUE(const Speaker speaker, speaker_of(request));
    if (speaker.worker.stream.size() < kStreamBytesMax) {
      PIF_TRY(room_for_bytes(job->uid, asked.bytes().size()));
      speaker.worker.stream += asked.bytes();
      answer.set_taken(true);
      job->news.notify();
      return packet;
    }
    if (now() >= until) return packet;
  }
}

void WorkerHost::Impl::take_rooms(Job& job, const proto::JobWait& asked) {
  for (const auto& room : asked.rooms()) {
    const auto is_it = [&](const Worker& worker) { return worker.rank == room.rank(); };
    const auto worker = std::find_if(job.workers.begin(), job.workers.end(), is_it);
    if (worker == job.workers.end() || room.at() < worker->stream_at) continue;
    const std::uint64_t had = std::min<std::uint64_t>(room.at() - worker->stream_at, worker->stream.size());
    worker->stream.erase(0, had);
    worker->stream_at += had;
    worker->stream_room = room.bytes();
  }
  job.room.notify();
}

// From where the controller has them; it may ask for the same again, if the answer is lost.
bool WorkerHost::Impl::add_streams(Job& job, std::size_t bytes_max, proto::JobWaitReply& answer) {
  std::size_t left = std::min(bytes_max, kPartBytesMax);
  bool is_all = true;
  for (auto& worker : job.workers) {
    const std::size_t bytes = std::min({left, worker.stream.size(), static_cast<std::size_t>(worker.stream_room)});
    worker.stream_room = 0;
    is_all = is_all && bytes == worker.stream.size();
    if (bytes == 0) continue;
    auto& part = *answer.add_parts();
    part.set_rank(worker.rank);
    part.set_at(worker.stream_at);
    part.set_bytes(worker.stream.substr(0, bytes));
    left -= bytes;
  }
  return is_all;
}

// Waits for what all have given, for a while: then it asks again.
Result<net::Packet> WorkerHost::Impl::worker_meet(const Request& request, const proto::WorkerMeet& asked) {
  PIF_TRY_VALUE(const Speaker speaker, speaker_of(request));
  const JobPtr& job = speaker.job;
  if (asked.value().size() > kMeetBytesMax)
    return fail(Code::kTooLarge, fmt::format("a worker gives {} bytes to the others; at most {} are allowed",
                                             asked.value().size(), kMeetBytesMax));
  if (!job->met && !std::exchange(speaker.worker.meets, true)) {
    proto::JobWaitReply::Event event;
    event.set_rank(speaker.worker.rank);
    event.set_meet(asked.value());
    add_event(*job, std::move(event));
  }
  if (!job->met) job->meeting.wait(now() + kJobHoldMax);
  net::Packet packet = Replies::reply(request);
  proto::WorkerMeetReply& answer = *packet.envelope.mutable_worker_meet_reply();
  if (job->met) answer = *job->met;
  return packet;
}

Result<net::Packet> WorkerHost::Impl::worker_start(const Request& request, const proto::WorkerStart& asked) {
  PIF_TRY_VALUE(const Speaker speaker, speaker_of(request));
  speaker.worker.next_words = std::min(speaker.worker.next_words, now() + kPollEvery);
  // Whole before the worker started.
  const std::string& description = speaker.job->descriptions.at(speaker.worker.rank);
  if (asked.at() > description.size())
    return fail(Code::kInvalid, fmt::format("the job's description has {} bytes", description.size()));
  net::Packet packet = Replies::reply(request);
  proto::WorkerStartReply& answer = *packet.envelope.mutable_worker_start_reply();
  answer.set_job(speaker.job->id);
  answer.set_rank(speaker.worker.rank);
  answer.set_description(description.substr(asked.at(), kPartBytesMax));
  answer.set_description_size(description.size());
  answer.mutable_node()->set_id(config.node);
  answer.mutable_node()->set_name(config.name);
  *answer.mutable_node()->mutable_endpoints() = config.endpoints;
  return packet;
}

Result<net::Packet> WorkerHost::Impl::worker_scratch(const Request& request, const proto::WorkerScratch&) {
  PIF_TRY(speaker_of(request));
  PIF_TRY_VALUE(auto file, world.storage.make_nameless(scratch_folder(config.root)));
  net::Packet packet = Replies::reply(request);
  packet.envelope.mutable_done();
  packet.handles.push_back(std::move(file));
  return packet;
}

// A controller that hangs up is gone: its lease need not run out first.
void WorkerHost::Impl::closed(net::PeerId peer) {
  const auto known = job_of_worker.find(peer);
  if (known == job_of_worker.end()) {
    for (auto& [id, job] : jobs) {
      if (job->controller != peer || job->killed) continue;
      if (job->is_over())
        set_lease(*job, std::min(job->lease, now() + kJobOver));
      else
        kill_job(*job, "its controller hung up");
    }
    return;
  }
  Worker& worker = worker_at(*jobs.at(known->second), peer);
  worker.peer = 0;
  worker.hung_up = now();
  poll_by(now());
  forget_peer(peer);
}

// ---- processes ----------------------------------------------------------------------------------------------------

void WorkerHost::Impl::kill_job(Job& job, std::string_view why) {
  if (!job.killed && job.has_live_workers()) spdlog::info("job {:016x}: workers killed: {}", job.id, why);
  job.killed = true;
  set_lease(job, now() + kTombstone);
  job.program.reset();
  for (auto& worker : job.workers) {
    if (!worker.gone) world.spawner.kill(worker.process);
  }
  if (job.has_live_workers()) poll_by(now());
  job.news.notify();
}

// Away from the loop: the worker may have filled it with a million files. One after another: what must become durable
// shares the executor's threads. At worst some of it stays.
void WorkerHost::Impl::remove_folder(std::string path) {
  left_folders.push_back(std::move(path));
  if (!std::exchange(is_removing, true)) fibers.start<&Impl::remove_folders>(*this);
}

void WorkerHost::Impl::remove_folders() {
  for (; !left_folders.empty(); left_folders.pop_front())
    daemon::disk(fibers, world.executor, [&, path = left_folders.front()] { (void)world.storage.remove_tree(path); });
  is_removing = false;
}

// Whether its program is there, as soon as that is known.
void WorkerHost::Impl::look_at_beginning(Job& job, Worker& worker) {
  const auto begun = worker.spawning ? world.spawner.begun(worker.process) : Spawner::Begun::kPending;
  if (begun != Spawner::Begun::kPending) settle_beginning(job, worker, begun == Spawner::Begun::kLacks);
}

void WorkerHost::Impl::settle_beginning(Job& job, Worker& worker, bool lacks) {
  const auto spawning = std::exchange(worker.spawning, nullptr);
  PIF_ASSERT(spawning != nullptr && spawning->waiting > 0, worker.rank);
  worker.lacks = lacks;
  if (!lacks) {
    ++spawning->started;
  } else {
    spawning->lacking.push_back(worker.rank);
    job.lacking.insert(worker.rank);
  }
  spawning->end_part();
}

// A controller that does not take them leaves them where they are, and at last they are counted only.
void WorkerHost::Impl::pass_words(Job& job, Worker& worker) {
  worker.next_words = now() + kPollEvery;
  if (worker.lacks || job.kept_words() > kSaidKeptMax) return;
  add_words(job, worker.rank, world.spawner.said(worker.process, kSaidAtOnce));
}

void WorkerHost::Impl::add_words(Job& job, std::uint32_t rank, std::string_view words) {
  for (std::size_t at = 0; at < words.size(); at += kSaidPartMax) {
    proto::JobWaitReply::Event event;
    event.set_rank(rank);
    event.set_said(std::string(words.substr(at, kSaidPartMax)));
    add_event(job, std::move(event));
  }
}

void WorkerHost::Impl::forget_peer(net::PeerId peer) {
  const std::size_t erased = job_of_worker.erase(peer);
  PIF_ASSERT(erased == 1, peer);
  on_gone(peer);
}

// Returns whether the worker is still there.
bool WorkerHost::Impl::poll_worker(Job& job, Worker& worker) {
  look_at_beginning(job, worker);
  auto exit = world.spawner.exited(worker.process);
  if (!exit) {
    // One that hung up, or has never come as far as to ask for its job, is about to end: its last words are for that.
    if (worker.hung_up == kNever && now() >= worker.next_words) pass_words(job, worker);
    if (worker.hung_up != kNever && now() - worker.hung_up > kExitPatience) world.spawner.kill(worker.process);
    return true;
  }
  if (worker.spawning) settle_beginning(job, worker, false);  // it has ended, so it had begun
  worker.gone = true;
  PIF_ASSERT(live > 0 && !job.workers.empty(), live);
  --live;
  if (!worker.own_folder.empty() && !worker.lacks) remove_folder(worker.own_folder);  // which is made for one that runs
  if (worker.peer != 0) {
    forget_peer(worker.peer);
    world.messenger.disconnect(std::exchange(worker.peer, 0));
  }
  if (worker.lacks) return false;  // it was no worker yet
  add_words(job, worker.rank, exit->by_signal || exit->value != 0 ? without_last_line(exit->said) : exit->said);
  proto::JobWaitReply::Event event;
  event.set_rank(worker.rank);
  if (exit->by_signal)
    event.set_killed(exit->value);
  else
    event.set_exited(exit->value);
  event.set_text(to_utf8(exit->last_words));  // its end may be in the middle of a character
  add_event(job, std::move(event));
  return false;
}

void WorkerHost::Impl::poll_workers() {
  bool any = false;
  bool soon = false;
  for (auto& [id, job] : jobs) {
    for (auto& worker : job->workers) {
      if (worker.gone || !poll_worker(*job, worker)) continue;
      any = true;
      soon = soon || job->killed || worker.hung_up != kNever || worker.spawning;
    }
    std::erase_if(job->workers, [](const Worker& worker) { return worker.gone && worker.lacks; });
  }
  next_poll = any ? now() + (soon ? kPollSoon : kPollEvery) : kNever;
}

}  // namespace pif::lfs
