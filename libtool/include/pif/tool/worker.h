// The worker's side of a tool: one process per LFS, started by the LFS's worker host, born with a connection to its
// LFS. It works on the components that are there, may exchange rows with the other workers (exchange.h), and ends; the
// controller (controller.h) seals and commits what all of them made.
//
//   pif::Status work(pif::tool::Worker& worker) {
//     PIF_TRY_VALUE(auto* const in, worker.input(0));
//     PIF_TRY_VALUE(auto* const out, worker.output(0));
//     pif::tool::RowBatch batch;
//     while (true) {
//       PIF_TRY_VALUE(const bool more, in->next(batch));
//       if (!more) return {};
//       batch.for_each([](auto record) { ... });
//       PIF_TRY(out->write(batch));
//       worker.progress(in->bytes_read(), in->bytes());
//     }
//   }
//
// A worker is killed when its tool is cancelled, its controller falls silent, or its LFS dies; what it wrote to outputs
// is removed then. Not thread-safe.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "pif/base/handle.h"
#include "pif/base/result.h"
#include "pif/client/client.h"
#include "pif/net/messenger.h"
#include "pif/net/real_messenger.h"
#include "pif/tool/component.h"
#include "pif/tool/head.h"
#include "pif/tool/message.h"
#include "pif/tool/scratch.h"

namespace pif::tool {

class Worker;

// Limit of Worker::set_result. The controller has those of all workers in memory at once; what an LFS keeps until then
// counts as kJobValueBytesMax says (controller.h).
inline constexpr std::size_t kJobResultBytesMax = 16u << 20;

// The work of a worker process. An error ends the whole job and is shown to the user, with worker and node.
using WorkerFunction = std::function<Status(Worker&)>;

// Where a worker takes mail from others of its job.
struct MailPlace {
  proto::Endpoints at;  // tcp "tcp://host:0": any port there; empty: nobody is on another machine
  net::CurveKeys keys;  // of all workers, for tcp; empty: plain, on 127.0.0.1
};
struct Mailbox {
  std::unique_ptr<net::Messenger> messenger;
  proto::Endpoints at;  // with the port
};

// The world of a worker: sockets in the real world, or a simulation's.
struct WorkerWorld {
  net::Messenger& messenger;    // for the connection below
  component::Storage& storage;  // adopts passed descriptors
  Entropy& entropy;
  Handle connection;  // to the LFS that started the worker
  // Called at most once.
  std::function<Result<Mailbox>(const MailPlace& place)> listen;
  // Whether this process may have threads. In a simulation one runs at a time, and the world says which.
  bool has_threads = false;
  // Where files go that were brought for this worker: called before its work begins. Empty: none can be.
  std::function<Status(const std::string& name, std::string_view content)> keep_file = {};
};

class Worker {
 public:
  // How a worker ended, for its process.
  struct Outcome {
    Status status;             // how `work` ended, or what went wrong around it
    bool is_reported = false;  // the controller hears of it: nobody else need know
    // Whether it ended well.
    explicit operator bool() const { return status.has_value(); }
  };
  // Asks the LFS what the job is, runs `work`, and reports how it ended.
  [[nodiscard]] static Outcome run(WorkerWorld world, const WorkerFunction& work);
  ~Worker();  // of run(), which makes the only one
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::uint32_t rank() const;       // 0 .. width - 1
  std::uint32_t width() const;      // workers of the job
  std::uint64_t job() const;        // its id, the same for all workers
  const std::string& node() const;  // name of its LFS, "lfs2"
  // NodeId of that worker's LFS, as layouts have it: where that is absent, and the worker's own LFS stands in for it,
  // that of the absent one.
  std::uint32_t node_id(std::uint32_t rank) const;
  // The worker on that node, or that is there for it. Nothing if the job has none there.
  std::optional<std::uint32_t> rank_on(std::uint32_t node_id) const;
  // The workers on a file's LFSs, or there for them, in their order. An error if one has none.
  [[nodiscard]] Result<std::vector<std::uint32_t>> ranks_on(const Component& file) const;
  // Whether all workers of the job are on one machine, and so may share memory and files (Team::share).
  bool shares_machine() const;
  // How many threads this worker may keep busy, itself included: its share of Job::threads or, if the user did not say
  // how many, of its machine's cores. At least 1. A kernel that uses them makes the same bytes for any number. A
  // Worker, its inputs and outputs belong to one thread all the same.
  unsigned threads() const;
  // The cores that it may run on, by number; at least one. Workers that have the same ones share them. With
  // Job::threads so many, the same for all; else in a simulation one of its own.
  std::vector<std::uint32_t> cores() const;
  // `task` on a thread of its own, or, where there is none to be had and in a simulation, when its result is asked for.
  // For work beside this thread: in memory, or reading and writing through descriptors (Input::check,
  // RowSink::write_rows). A task touches nothing else of the worker, and what it touches outlives it: before these go,
  // wait for the future.
  std::future<Status> start(std::function<Status()> task);
  // f(i) for each i below `parts`, as tasks, the first one on this thread. Ends when all have; the error of the lowest.
  [[nodiscard]] Status run_tasks(std::size_t parts, const std::function<Status(std::size_t)>& f);
  // The tool's own description of the job (Job::value), the same for all workers. Valid as long as the worker.
  std::string_view value() const;
  // The same as a struct (head.h), as the controller packed it: Job::value = pack_head(...). kCorrupt: it is none.
  template <Head T>
  [[nodiscard]] Result<T> value_as() const {
    auto read = unpack_head<T>(value());
    return read ? Result<T>(std::move(*read)) : sent_nonsense("the controller", "a job's value that cannot be read");
  }

  // How many inputs and outputs the controller opened and created, on whatever LFSs.
  std::size_t input_count() const;
  std::size_t output_count() const;
  // In the order in which the controller opened and created them; the worker owns them. The first call attaches the
  // component. Not an error: a file that has no component on this worker's LFS (is_here() says so). kInvalid: the job
  // has no such number; kCorrupt: the component is shorter than the file; else what the LFS says. Valid as long as the
  // worker.
  [[nodiscard]] Result<Input*> input(std::size_t i);
  [[nodiscard]] Result<Output*> output(std::size_t i);
  // Gives an input back with its descriptors, for who has very many, one after another; input() attaches it again.
  // Reads are counted. i < input_count().
  void close_input(std::size_t i);

  // A new scratch file on the disk of the worker's LFS. It may outlive the worker object.
  [[nodiscard]] Result<Scratch> scratch();

  // How far it is, for the user's eyes. Cheap: at most a few times a second it goes anywhere.
  void progress(std::uint64_t bytes_done, std::uint64_t bytes_total);
  // Whether one of the job's workers stops for a debugger, so that the others need patience.
  bool is_debugged() const;
  // Names the work from now on, until the next call: for a trace (Controller::trace), and nothing without one.
  void begin_phase(const std::string& name);
  // The tool's own result, at most kJobResultBytesMax, else the worker ends with kTooLarge; the controller gets all of
  // them by rank.
  void set_result(std::string value);
  template <Head T>
  void set_result_as(const T& value) {
    set_result(pack_head(value));
  }
  // Counted in the tool's report.
  void count_sent(std::uint64_t record_bytes);

  // From the worker's world: real, or a simulation's, so that tools can be simulated. Valid as long as the worker.
  Clock& clock();
  Entropy& entropy();

 private:
  friend class Exchange;
  friend class Mail;
  friend class RecordStream;
  friend class Team;
  struct Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::tool
