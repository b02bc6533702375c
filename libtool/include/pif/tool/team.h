// What the workers of a job do together: barriers, gathering, memory and outputs in common, turns. Every worker calls
// the same functions in the same order; each call is one step. A worker's death ends the job, and so everybody's wait.
//
// Sharing memory and outputs needs all workers on one machine: kUnavailable otherwise. Errors of all steps: kTimeout
// after the team's patience; kInternal: a worker is at another step than this one; kCorrupt names a worker that sent
// what cannot be. After an error the team is of no more use. Not thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/scratch.h"
#include "pif/tool/shared_memory.h"
#include "pif/tool/worker.h"

namespace pif::tool {

class Mail;
struct Letter;

// What one worker told another, in the tool's own words.
struct Message {
  std::uint32_t from = 0;  // rank
  std::string head;        // at most 64 KiB; for what is longer there is the body
  net::Buffer body;
};

class Team {
 public:
  // worker: outlives it. patience: how long a step may wait for others (kTimeout then). A worker that dies ends the job
  // within seconds; this is for messages that were lost, and for the case that nobody is left to end it.
  static Result<Team> join(Worker& worker, Duration patience = std::chrono::hours(24));

  // The worker's: deadlines of receive() are by it.
  Clock& clock() { return worker_->clock(); }

  // Returns when all workers have called it.
  [[nodiscard]] Status barrier();
  // What every worker gave, by rank. Some MiB in all, since every worker gets it; kTooLarge from 2 GiB on.
  Result<std::vector<std::string>> all_gather(std::string value);
  // What the worker of that rank gave; the others' values do not count. kInvalid: there is no such rank.
  Result<std::string> broadcast(std::string value, std::uint32_t from = 0);
  // What every worker gave, by rank. kCorrupt names a worker that gave another number of values than this one.
  Result<std::vector<std::vector<std::uint64_t>>> all_gather_numbers(const std::vector<std::uint64_t>& values);
  // The sums, place by place, of what all gave, which has the same number of places everywhere. kCorrupt: one does not
  // fit 64 bits.
  Result<std::vector<std::uint64_t>> sum(const std::vector<std::uint64_t>& values);
  // Everybody's memory, by rank; this worker's own is mapped once more. Empty ones stay empty.
  Result<std::vector<SharedMemory>> share(const SharedMemory& own);
  // The same with scratch files that are mapped; and with allocated ones, for everybody to write to.
  Result<std::vector<Scratch>> share(const Scratch& own);
  Result<std::vector<Scratch>> share_writable(const Scratch& own);
  // The component of `output` on every LFS that has one (Output::has_component), by LfsIndex: writable, to be used by
  // component::Writers as these say. The owner of a component says how it ended (Output::set_tail), when all others are
  // done with it. kCorrupt names a worker that did not pass its own.
  Result<std::vector<component::Files>> share_output(Output& output);
  // The components of `input` on all its LFSs, by LfsIndex, for checked reads; empty where there are no rows. What is
  // read through them is not counted as read by `input`.
  Result<std::vector<std::unique_ptr<Input>>> share_input(Input& input);
  // One worker after another, by rank: f gets what its predecessor left (the first one: an empty string) and changes it
  // for its successor. Does not wait for the others' turns. An error of f is returned, and those after it wait in vain.
  // The state travels in a header: kTooLarge from about kHeaderBytesMax on.
  [[nodiscard]] Status in_turn(const std::function<Status(std::string& state)>& f);

  // Talk, a step of any length: every worker begins it, and it ends with the next call of anything else. What is told
  // between two workers is heard in that order. Never waits; a worker may tell itself. rank < width. What is left
  // unheard when the talk ends is dropped. send(): kUnavailable if more waits for that worker than the transport keeps.
  void begin_talk();
  [[nodiscard]] Status send(std::uint32_t rank, std::string head, net::Buffer body = {});
  // The next word for this worker; nothing at the deadline.
  Result<std::optional<Message>> receive(Time deadline);
  // take(word) for words that are there, some of them. With patience it waits so long for the first: kTimeout if none
  // comes.
  [[nodiscard]] Status receive_some(Duration patience, const std::function<Status(Message)>& take);

 private:
  Team(Worker& worker, Mail& mail, Duration patience) : worker_(&worker), mail_(&mail), patience_(patience) {}
  using Handles = std::vector<Handle>;
  Result<Letter> next();
  // The next letter of a step in which only that worker sends.
  Result<Letter> next_from(std::uint32_t rank);
  Result<std::vector<std::string>> collect(std::string value);
  [[nodiscard]] Status send_value(std::uint32_t rank, const std::string& value);
  // Adds a part to the value; whether that was the last.
  static Result<bool> take_part(const Letter& letter, std::string& value);
  // Everybody's `own`, by rank: a SharedMemory or a Scratch of so many bytes.
  template <typename T, typename Adopt>
  Result<std::vector<T>> share_any(const T& own, std::uint64_t bytes, const Adopt& adopt);
  // Gives what make() makes to every other worker; gets what they gave, by rank. Its own place stays empty.
  Result<std::vector<Handles>> pass_to_all(const std::function<Result<Handles>()>& make);

  Worker* worker_;
  Mail* mail_;
  Duration patience_;
  std::deque<Message> own_;  // told by this worker to itself
};

}  // namespace pif::tool
