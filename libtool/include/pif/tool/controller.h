// The controller's side of a tool: the process that the user started. Dibble 1990, section 5.1: connect to the PIF
// Server, get the LFSs' handles and what is known of the inputs, create outputs, start a worker on each LFS through a
// tree, wait for them, collect, commit.
//
//   pif::tool::Controller controller(client, options);
//   PIF_TRY(controller.open("/in"));
//   PIF_TRY(controller.create("/out", create_options));
//   PIF_TRY(controller.run({}));
//   PIF_TRY(controller.commit());
//
// Whatever goes wrong (a worker, an LFS or the user ends it) the workers are killed everywhere and the outputs vanish;
// the error says which worker on which node died of what. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/result.h"
#include "pif/client/client.h"
#include "pif/component/storage.h"
#include "pif/tool/head.h"
#include "pif/tool/message.h"
#include "pif/tool/report.h"
#include "pif/tool/stream_taker.h"

namespace pif::tool {

// The build of a tool's program, which is brought to LFSs that lack it. An LFS has the same limit (docs/PROTOCOL.md
// "Worker host").
inline constexpr std::uint64_t kProgramBytesMax = 64u << 20;

// For Job::value. It is in the memory of the controller, of every LFS while the job runs, and of every worker. An LFS
// gives all jobs together 256 MiB for values and results, and those of one user half of it: `busy` if that does not do.
inline constexpr std::size_t kJobValueBytesMax = 16u << 20;

// Together, of those that a user brings to workers with --file; with Job::value at most a little more.
inline constexpr std::size_t kBroughtBytesMax = 16u << 20;

// A folder of a worker's host that workers may open things in, as far as the user may who starts the tool. The LFS
// refuses one that has a root, keys or sockets of the file system in it, or is in one of these, and any if pif.toml
// says grants = "none"; then run() fails.
struct FolderGrant {
  std::string folder;      // absolute, at most kFolderGrantsMax of them; it must be there on every worker's host
  bool may_write = false;  // and make, rename and remove; else they can read, and run programs
};
inline constexpr std::size_t kFolderGrantsMax = 16;

// A file that each worker finds in its $TMPDIR when it begins.
struct BroughtFile {
  std::string name;  // no two have the same
  std::string content;
};

struct ControllerOptions {
  std::string program;  // absolute path of the tool
  std::string build;    // its build id (pif/component/build.h); empty: whatever is at that path is run
  // Its bytes, which are brought to LFSs that do not have that build there; null: they are not.
  std::shared_ptr<component::File> image;
  std::vector<std::string> arguments;  // of the worker; tool_main.h makes them select the worker's role
  std::string working_folder = "/";
  std::string folder;               // the file system's, on this host; empty: it is not known
  std::uint32_t fan_out = 8;        // of the tree by which workers are started
  bool apart = false;               // workers on one machine too talk over the network (for measurements)
  std::vector<FolderGrant> grants;  // of all jobs, beside Job::grants
  std::vector<BroughtFile> files;
  // Called once, just before the first worker is started.
  std::function<void()> on_start;
  // Asked several times a second: whether the user wants the job to end.
  std::function<bool()> is_cancelled;
  // How far the job is, all workers together; at most a few times a second.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> on_progress;
  // A line that the worker of that rank wrote on stdout or stderr, without its end; node: where, "lfs2" or "lfs2 at
  // h1". A line of over 64 KiB comes in pieces. At most some 1 MiB a second of each worker.
  std::function<void(std::uint32_t rank, const std::string& node, std::string_view line)> on_words;
  // Whether workers note what takes them time: Controller::trace().
  bool is_traced = false;
  // The rank of a worker that stops at its start (SIGSTOP), and says where, so that a debugger may be attached; kill
  // -CONT lets it go on. The others wait for it.
  std::optional<std::uint32_t> debugged;
  // Called once, after the last progress, whatever the workers came to.
  std::function<void()> on_finish;
};

struct Job {
  // NodeIds, one worker each, in the order of ranks. Empty: all LFSs of the inputs and outputs, or, if there are none
  // of these, all that are up.
  std::vector<std::uint32_t> nodes = {};
  std::string value = {};  // for the workers: Worker::value(); at most kJobValueBytesMax
  // On each machine, for all workers there together (Worker::threads()); 0: as many as it has cores for them.
  unsigned threads = 0;
  // Takes records that workers put into a RecordStream; without it they cannot.
  StreamTaker stream = {};
  std::vector<FolderGrant> grants = {};
};

// The results that workers gave with set_result_as(), by rank. kCorrupt names one that gave something else.
template <Head T>
[[nodiscard]] Result<std::vector<T>> results_as(const std::vector<std::string>& results) {
  std::vector<T> all;
  for (const std::string& result : results) {
    auto read = unpack_head<T>(result);
    if (!read) return sent_nonsense(static_cast<std::uint32_t>(all.size()), "a result that cannot be read");
    all.push_back(std::move(*read));
  }
  return all;
}

class Controller {
 public:
  // client outlives it; what options call runs on the thread of run(). Nothing is asked yet.
  Controller(Client& client, ControllerOptions options);
  ~Controller();  // aborts what was not committed
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Opens an input and holds it against writers until the job is over. kBusy names a writer who has it. Returns its
  // number, from 0. Else as Client::open(). kRead: nobody is held off. Then workers see the file as long as it is when
  // they start, and a row that is overwritten while it is read may be kCorrupt to them.
  Result<std::size_t> open(const std::string& path, Client::Mode mode = Client::Mode::kHold);
  // Gives all inputs back, after run(): others may be opened, and another job run.
  void close_inputs();
  // A file that this client has created and written, as an input that never gets a name: it is sealed here, and removed
  // when the controller ends, however its process does. Returns its number. Errors: as File::commit().
  [[nodiscard]] Result<std::size_t> take(File created);
  // Creates an output that nobody sees before commit(). Returns its number, from 0. Errors: as Client::create();
  // kUnavailable: it would have parity and rows on an LFS that is lost, where no worker runs.
  Result<std::size_t> create(const std::string& path, const CreateOptions& options);
  // The same of many at once, some hundreds at most. Returns the number of the first; the others follow. An error is
  // that of one of them.
  Result<std::size_t> create_many(std::span<const Client::NewFile> files);
  // The length that an output will have; before run(), for workers go by it. Without it: the sum of what the workers
  // wrote (right for files without bevies).
  void set_file_length(std::size_t output, const FileLength& file_length);

  // The output is to have the rows of that input, all of them; before commit(). Then LFSs copy parity where both files
  // have the same layout and it is right, instead of making it out of rows. Where they differ this says nothing.
  void set_copy_of(std::size_t output, std::size_t input);

  // By the numbers that open() and create() gave, and no others. Valid until the next open() or create(), outputs until
  // commit() or abort().
  File& input(std::size_t i);
  File& output(std::size_t i);

  // Starts the workers and waits for all of them; their own results (Worker::set_result) by rank.
  // kCancelled when is_cancelled said so; kTooLarge for a value over kJobValueBytesMax; kInvalid for a node that is not
  // there; kUnavailable if no LFS is up, or workers on several machines have no tcp; kUnsupported if a machine lacks
  // the program, and it cannot be brought there; else how a worker ended, which the text names. Then no worker is left.
  // After all open() and create(). A controller may run several jobs, one after another, on the same inputs, or on
  // others after close_inputs(); outputs are those of the last of them, created behind the jobs before it.
  [[nodiscard]] Result<std::vector<std::string>> run(const Job& job);
  // Seals every output on all its LFSs at once and commits them: durable and visible when it returns.
  // After run(). kInternal: the workers made other rows than the output's length gives. After an error some outputs may
  // be committed; abort() removes the others.
  [[nodiscard]] Status commit();
  // Instead of commit(), of one that nobody is to see: seals all outputs, and gives a File to read this one by. It is
  // there until the controller ends.
  [[nodiscard]] Result<File> read_unseen(std::size_t output);
  // Removes the outputs. No error: outputs that cannot be removed now, the PIF Server finds when this session ends.
  void abort();

  // ControllerOptions::folder, and what it has of calibrations: load_calibration(), asked once. kNotFound too if the
  // folder is not known. Valid as long as the controller.
  const std::string& folder() const;
  const Result<Calibration>& calibration();
  // Puts the result of `formula` for the calibration into the report, if anybody wants one; or why there is none.
  void predict(const std::function<Prediction(const Calibration&)>& formula);

  // Whether the user wants the command to end: for work before and after run().
  bool is_cancelled() const;

  // With is_traced, the time that each step took so far: a Chrome trace (one JSON document; chrome://tracing and
  // Perfetto show it) of the controller's phases and of each worker's phases (Worker::begin_phase), reads, writes,
  // messages and waits. Machines' wall clocks say when.
  std::string trace() const;

  // Phases and bytes so far; tools add their own. Both are valid as long as the controller.
  Report& report();
  Client& client();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pif::tool
