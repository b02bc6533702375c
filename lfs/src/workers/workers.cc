// What workers say to their LFS, and what becomes of their processes.
#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/path.h"
#include "store/root.h"
#include "workers/worker_host_impl.h"

namespace pif::lfs {
namespace {

using proto::Envelope;

constexpr Duration kTombstone = std::chrono::seconds(10);           // a killed job's spawn may still be on its way
constexpr Duration kPollSoon = std::chrono::milliseconds(1);        // of processes that are ending
constexpr Duration kExitPatience = std::chrono::milliseconds(500);  // a worker that hung up must be gone by then
constexpr std::size_t kResultBytesMax = 64u << 10;
constexpr std::size_t kMeetBytesMax = 1024;  // of one worker

}  // namespace

// ---- workers' own requests ----------------------------------------------------------------------------------------

bool WorkerHost::Impl::on_worker_packet(net::Delivery& delivery) {
  const Envelope& request = delivery.packet.envelope;
  const auto op = request.op_case();
  if (op != Envelope::kWorkerStart && op != Envelope::kWorkerProgress && op != Envelope::kWorkerResult &&
      op != Envelope::kWorkerScratch && op != Envelope::kWorkerMeet)
    return false;
  const Asker asker = asker_of(delivery, now());
  const auto known = job_of_worker.find(delivery.peer);
  if (known == job_of_worker.end()) {
    refuse(asker, Error{Code::kPermission, "only a worker that this LFS started may ask this", {}});
    return true;
  }
  Job& job = jobs.at(known->second);
  Worker& worker = worker_at(job, delivery.peer);
  if (op == Envelope::kWorkerStart)
    on_worker_start(asker, job, worker);
  else if (op == Envelope::kWorkerScratch)
    on_worker_scratch(asker);
  else if (op == Envelope::kWorkerMeet)
    on_worker_meet(asker, job, worker, request.worker_meet().value());
  else
    on_worker_said(asker, job, worker, request);
  return true;
}

// For its controller.
void WorkerHost::Impl::on_worker_said(const Asker& asker, Job& job, Worker& worker, const Envelope& request) {
  const bool is_progress = request.has_worker_progress();
  const std::string& bytes = is_progress ? request.worker_progress().progress() : request.worker_result().result();
  if (bytes.size() > kResultBytesMax) {
    return refuse(asker, Error{Code::kTooLarge,
                               fmt::format("a worker's result of {} bytes; at most {} are allowed", bytes.size(),
                                           kResultBytesMax),
                               {}});
  }
  if (!is_progress && std::exchange(worker.has_result, true))  // they are kept until the controller has them
    return refuse(asker, Error{Code::kInvalid, "a worker has one result, and this one has given it", {}});
  proto::JobWaitReply::Event event;
  event.set_rank(worker.rank);
  if (is_progress) {
    event.set_progress(bytes);
  } else {
    event.set_result(bytes);
    net::Packet packet = net::reply_to(request);
    packet.envelope.mutable_done();
    reply(asker, std::move(packet));
  }
  add_event(job, std::move(event));
}

void WorkerHost::Impl::on_worker_meet(const Asker& asker, Job& job, Worker& worker, const std::string& value) {
  if (value.size() > kMeetBytesMax) {
    return refuse(asker, Error{Code::kTooLarge,
                               fmt::format("a worker gives {} bytes to the others; at most {} are allowed",
                                           value.size(), kMeetBytesMax),
                               {}});
  }
  worker.meeting = asker;
  job.meeting_until = std::min(job.meeting_until, now() + kJobHoldMax);
  if (job.met) return answer_meetings(job);
  if (std::exchange(worker.meets, true)) return;
  proto::JobWaitReply::Event event;
  event.set_rank(worker.rank);
  event.set_meet(value);
  add_event(job, std::move(event));
}

void WorkerHost::Impl::answer_meetings(Job& job) {
  job.meeting_until = kNever;
  for (auto& worker : job.workers) {
    if (!worker.meeting) continue;
    net::Packet packet = net::reply_to(worker.meeting->request);
    proto::WorkerMeetReply& answer = *packet.envelope.mutable_worker_meet_reply();
    if (job.met) answer = *job.met;
    reply(*worker.meeting, std::move(packet));
    worker.meeting.reset();
  }
}

void WorkerHost::Impl::on_worker_start(const Asker& asker, const Job& job, const Worker& worker) {
  net::Packet packet = net::reply_to(asker.request);
  proto::WorkerStartReply& answer = *packet.envelope.mutable_worker_start_reply();
  answer.set_job(job.id);
  answer.set_rank(worker.rank);
  answer.set_description(job.description);
  answer.mutable_node()->set_id(config.node);
  answer.mutable_node()->set_name(config.name);
  *answer.mutable_node()->mutable_endpoints() = config.endpoints;
  reply(asker, std::move(packet));
}

void WorkerHost::Impl::on_worker_scratch(const Asker& asker) {
  auto file = world.storage.make_nameless(scratch_folder(config.root));
  if (!file) return refuse(asker, file.error());
  net::Packet packet = net::reply_to(asker.request);
  packet.envelope.mutable_done();
  packet.handles.push_back(std::move(*file));
  reply(asker, std::move(packet));
}

// A controller that hangs up is gone: its lease need not run out first.
bool WorkerHost::Impl::on_closed(net::PeerId peer) {
  const auto known = job_of_worker.find(peer);
  if (known == job_of_worker.end()) {
    for (auto& [id, job] : jobs) {
      if (job.controller != peer || job.killed) continue;
      if (job.is_over())
        job.lease = std::min(job.lease, now() + kJobOver);
      else
        kill_job(job, "its controller hung up");
    }
    return false;
  }
  Job& job = jobs.at(known->second);
  Worker& worker = worker_at(job, peer);
  worker.peer = 0;
  worker.hung_up = now();
  next_poll = now();
  job_of_worker.erase(known);
  return true;
}

// ---- processes ----------------------------------------------------------------------------------------------------

void WorkerHost::Impl::kill_job(Job& job, std::string_view why) {
  if (!job.killed && job.has_live_workers()) spdlog::info("job {:016x}: workers killed: {}", job.id, why);
  job.killed = true;
  job.lease = now() + kTombstone;
  for (auto& worker : job.workers) {
    if (!worker.gone) world.spawner.kill(worker.process);
  }
  if (job.has_live_workers()) next_poll = now();
  if (job.wait) answer_wait(job);
}

// Away from the loop: the worker may have filled it with a million files. One after another: what must become durable
// shares the executor's threads. At worst some of it stays.
void WorkerHost::Impl::remove_folder(std::string path) {
  left_folders.push_back(std::move(path));
  if (left_folders.size() == 1) remove_next_folder();
}

void WorkerHost::Impl::remove_next_folder() {
  auto work = [storage = &world.storage, path = left_folders.front()] { (void)storage->remove_tree(path); };
  world.executor.submit(std::move(work), [this] {
    left_folders.pop_front();
    if (!left_folders.empty()) remove_next_folder();
  });
}

// Returns whether the worker is still there.
bool WorkerHost::Impl::poll_worker(Job& job, Worker& worker) {
  auto exit = world.spawner.exited(worker.process);
  if (!exit) {
    if (worker.hung_up != kNever && now() - worker.hung_up > kExitPatience) world.spawner.kill(worker.process);
    return true;
  }
  worker.gone = true;
  --live;
  if (!worker.own_folder.empty()) remove_folder(worker.own_folder);
  if (worker.peer != 0) {
    job_of_worker.erase(worker.peer);
    world.messenger.disconnect(std::exchange(worker.peer, 0));
  }
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
  bool ending = false;
  for (auto& [id, job] : jobs) {
    for (auto& worker : job.workers) {
      if (worker.gone || !poll_worker(job, worker)) continue;
      any = true;
      ending = ending || job.killed || worker.hung_up != kNever;
    }
  }
  next_poll = any ? now() + (ending ? kPollSoon : kPollEvery) : kNever;
}

}  // namespace pif::lfs
