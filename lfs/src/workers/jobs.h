// The jobs of tools, as an LFS's worker host knows them: their workers here, and who waits for word of them.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "context/request.h"
#include "pif/base/assert.h"
#include "pif/daemon/fibers.h"
#include "pif/lfs/lfs.h"
#include "workers/programs.h"

namespace pif::lfs {

// One Spawn request, which may bring a part of the job's description or program: the worker here of one rank, and the
// parts of the tree that it was handed on to.
struct Spawning {
  explicit Spawning(daemon::Fibers& fibers) : news(fibers) {}

  std::uint32_t started = 0;
  std::vector<std::uint32_t> lacking;  // ranks
  std::size_t waiting = 0;             // parts that have not answered, and a worker here that has not begun
  std::optional<Error> error;
  daemon::Event news;  // of all that

  bool is_over() const { return waiting == 0 || error; }
  void add(const proto::SpawnReply& part) {
    started += part.started();
    lacking.insert(lacking.end(), part.lacking().begin(), part.lacking().end());
  }
  // The first error counts.
  void fail_with(Error why) {
    if (!error) error = std::move(why);
    news.notify();
  }
  void end_part() {
    PIF_ASSERT(waiting > 0);
    --waiting;
    news.notify();
  }
};
using SpawningPtr = std::shared_ptr<Spawning>;
// Its rank; where its part of the description begins; where that of the program begins, counted from 1, or 0.
using SpawnPart = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

// An LFS may have several of a job: those of other ranks do what the workers of absent LFSs would.
struct Worker {
  std::uint32_t rank = 0;
  Spawner::ProcessId process = 0;
  std::string own_folder;  // removed with it
  net::PeerId peer = 0;    // 0: hung up
  Time hung_up = kNever;
  Time next_words = kNever;  // when what it has written goes to its controller; not before it has asked for its job
  bool gone = false;
  bool lacks = false;              // its program was not there: it never ran
  SpawningPtr spawning;            // waits to hear whether it was; null: it has heard
  std::uint64_t result_bytes = 0;  // of what it found, said so far,
  bool has_result = false;         // and all of it
  std::string stream;              // to its controller: what that has not said to have,
  std::uint64_t stream_at = 0;     // where that begins,
  std::uint64_t stream_room = 0;   // how much of it the controller takes now
  bool meets = false;              // it has given what the others shall know
};

struct Job {
  explicit Job(daemon::Fibers& fibers) : news(fibers), room(fibers), meeting(fibers) {}

  std::uint64_t id = 0;
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;
  std::int64_t since = 0;                             // wall seconds: when it came here
  std::int64_t speaks_until = 0;                      // wall seconds: of the credential with which its spawn came here
  std::map<std::uint32_t, std::string> descriptions;  // as much as has come, by rank of the worker here
  net::PeerId controller = 0;                         // who last waited; was found to be `uid`
  Time lease;
  bool killed = false;
  std::uint64_t last_number = 0;
  std::deque<proto::JobWaitReply::Event> events;
  std::vector<Worker> workers;
  std::map<SpawnPart, SpawningPtr> spawning;
  std::set<std::uint32_t> lacking;             // ranks of workers here that wait for their program,
  std::unique_ptr<Programs::Arrival> program;  // which is coming
  std::uint64_t last_wait = 0;                 // of its controller: a newer one replaces an older one
  std::optional<proto::WorkerMeetReply> met;   // what all workers gave, when the controller has said it
  // These wake those who wait:
  daemon::Event news;     // its controller, for an event, some of a stream, or its end
  daemon::Event room;     // workers, for room in their streams
  daemon::Event meeting;  // workers, for `met`

  bool has_live_workers() const {
    return std::any_of(workers.begin(), workers.end(), [](const Worker& w) { return !w.gone; });
  }
  // The bytes of the job's description, and of results that its controller has not seen.
  std::uint64_t kept_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [rank, description] : descriptions) bytes += description.size();
    for (const auto& event : events) bytes += event.result().size() + event.said().size();
    for (const auto& worker : workers) bytes += worker.stream.size();
    return bytes;
  }
  // The bytes that workers said and the controller has not seen.
  std::uint64_t kept_words() const {
    std::uint64_t bytes = 0;
    for (const auto& event : events) bytes += event.said().size();
    return bytes;
  }
  // Whether the controller, which waits, takes something of a stream.
  bool has_stream() const {
    return std::any_of(workers.begin(), workers.end(),
                       [](const Worker& w) { return !w.stream.empty() && w.stream_room > 0; });
  }
  bool is_over() const { return !workers.empty() && !has_live_workers(); }
};

using JobPtr = std::shared_ptr<Job>;

// The subtree cut into at most `parts` consecutive stretches of nearly the same length.
inline std::vector<Range> cut(std::size_t count, std::size_t parts) {
  std::vector<Range> ranges;
  parts = std::clamp<std::size_t>(parts, 1, std::max<std::size_t>(count, 1));
  for (std::size_t i = 0; i < parts && count > 0; ++i) ranges.push_back({i * count / parts, (i + 1) * count / parts});
  PIF_ASSERT(ranges.empty() || ranges.back().end == count, count);
  return ranges;
}

}  // namespace pif::lfs
