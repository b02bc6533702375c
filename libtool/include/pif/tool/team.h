// Common work of a job's workers: barriers, gathering, memory and outputs in common, turns. Every worker calls the same
// functions in the same order; each call is one step, and so is a talk (channel.h). A worker's death ends the job, and
// so everybody's wait. Common values go up a tree of workers and down again.
//
// Sharing memory and outputs needs all workers on one machine: kUnavailable otherwise. A message that is lost between
// machines is no error of a step: the controller ends the job (docs/PROTOCOL.md). Errors of all steps: kTimeout
// after the team's patience; kInternal: a worker is at another step than this one; kCorrupt names a worker that sent
// what cannot be. After an error the team is of no more use. Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/scratch.h"
#include "pif/tool/shared_memory.h"
#include "pif/tool/worker.h"

namespace pif::tool {

class Flow;
class Mail;
class Talk;
struct Letter;

class Team {
 public:
  // worker: outlives it. patience: how long a step may wait for others (kTimeout then). A worker that dies ends the job
  // within seconds, and a message that was lost between machines within a minute; this is for a tool's bugs, and for
  // the case that nobody is left to end the job.
  static Result<Team> join(Worker& worker, Duration patience = std::chrono::hours(24));

  // The worker's.
  Clock& clock() { return worker_->clock(); }

  // Returns when all workers have called it.
  [[nodiscard]] Status barrier();
  // The values of every worker, by rank. Every worker gets it and has it in memory; kTooLarge from 2 GiB on.
  Result<std::vector<std::string>> all_gather(std::string value);
  // The same for one worker alone: what every worker gave, by rank; nothing at the others. kInvalid: there is no worker
  // `to`.
  Result<std::vector<std::string>> gather(std::string value, std::uint32_t to = 0);
  // One value for each worker, by rank; comes back what each had for this one, by rank. kInvalid: not one for each.
  Result<std::vector<std::string>> all_to_all(const std::vector<std::string_view>& values);
  // The values of all, put together by f, which adds one value to another and gives the same in any order. Everybody
  // gets it. Along a tree: no worker has more than a few values in memory. (Numbers place by place: reduce.h.)
  Result<std::string> all_reduce(std::string value,
                                 const std::function<Status(std::string& to, std::string_view value)>& f);
  // The value of the worker of that rank; the others' values do not count. kInvalid: there is no such rank.
  Result<std::string> broadcast(std::string value, std::uint32_t from = 0);
  // The values of every worker, by rank. kCorrupt names a worker that gave another number of values than this one.
  Result<std::vector<std::vector<std::uint64_t>>> all_gather_numbers(const std::vector<std::uint64_t>& values);
  // The sums, place by place, of what all gave, which has the same number of places everywhere. kCorrupt: one does not
  // fit 64 bits.
  Result<std::vector<std::uint64_t>> sum(const std::vector<std::uint64_t>& values);
  // Everybody's memory, by rank; this worker's own is mapped once more. Empty ones stay empty.
  Result<std::vector<SharedMemory>> share(const SharedMemory& own);
  // The same, but of workers on other machines than this one's it stays empty.
  Result<std::vector<SharedMemory>> share_near(const SharedMemory& own);
  // The same as share() with scratch files that are mapped; and with allocated ones, for everybody to write to.
  Result<std::vector<Scratch>> share(const Scratch& own);
  Result<std::vector<Scratch>> share_writable(const Scratch& own);
  // The component of `output` on every LFS that has one (Output::has_component), by LfsIndex: writable, to be used by
  // component::Writers as these say. The owner of a component says how it ended (Output::set_tail), when all others are
  // done with it. kCorrupt names a worker that did not pass its own.
  Result<std::vector<component::Files>> share_output(Output& output);
  // The components of `input` on all its LFSs, by LfsIndex, for checked reads; empty where there are no rows. Reads
  // through them are not counted as reads of `input`.
  Result<std::vector<std::unique_ptr<Input>>> share_input(Input& input);
  // One worker after another, by rank: f gets what its predecessor left (the first one: an empty string) and changes it
  // for its successor. Does not wait for the others' turns. An error of f is returned, and those after it wait in vain.
  [[nodiscard]] Status in_turn(const std::function<Status(std::string& state)>& f);

 private:
  Team(Worker& worker, Mail& mail, Duration patience) : worker_(&worker), mail_(&mail), patience_(patience) {}
  friend class Flow;
  friend class Talk;
  using Handles = std::vector<Handle>;
  // Everybody's `own`, by rank: a SharedMemory or a Scratch of so many bytes.
  template <typename T, typename Adopt>
  Result<std::vector<T>> share_any(const T& own, std::uint64_t bytes, bool only_near, const Adopt& adopt);
  // The handles of all workers on this machine, by rank; this one's is there, too, as another handle. kUnavailable,
  // unless only_near: not all are on this machine.
  Result<std::vector<Handles>> pass_to_all(Handles own, bool only_near);
  [[nodiscard]] Status pass(std::uint32_t to, std::span<const std::uint32_t> owners, const std::vector<Handles>& all);
  [[nodiscard]] Status take_passed(std::span<const std::uint32_t> from, bool may_bring_others,
                                   std::vector<Handles>& all);

  Worker* worker_;
  Mail* mail_;
  Duration patience_;
};

}  // namespace pif::tool
