// A local file system (LFS): the daemon of one storage node or disk. It owns its components (catalogue in the key-value
// store, records in files), serves them by message and by passed descriptors, verifies every capability itself, logs
// overwrites, recovers by itself, and hosts the workers of tools. It knows the PIF Server only as a peer it reports to.
// One thread: serve() runs the event loop; long work goes through the executor.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/executor.h"
#include "pif/base/key_ring.h"
#include "pif/base/result.h"
#include "pif/component/storage.h"
#include "pif/kv/store.h"
#include "pif/lfs/disk_health.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

// Tables of the catalogue, in the order in which the store must be opened.
inline const std::vector<std::string> kCatalogueTables = {"components", "meta", "quarantine", ""};

struct WorkerExit {
  bool by_signal = false;
  int value = 0;           // exit code or signal
  std::string last_words;  // end of what it wrote on stdout and stderr
  std::string said;        // of that, what Spawner::said() has not given
};

// The rules for the workers of an LFS. The owner of its file system sets them.
struct WorkerRules {
  bool grants = true;                  // folders that a tool's user names
  bool memory_bounded = true;          // not: for programs with sanitizers
  std::vector<std::string> kept_away;  // absolute paths: no grant is with or in one of these
};

// A folder that a tool's user gives to its workers.
struct FolderGrant {
  std::string folder;  // absolute
  bool may_write = false;
};

// Starts and ends worker processes (real_spawner.h has the real one; a simulation starts actors). The loop's thread
// only.
class Spawner {
 public:
  struct Order {
    std::string program;             // absolute
    std::string build;               // of it (pif/base/build_id.h); empty: what is there is run, whatever it is
    const Handle* stored = nullptr;  // run where that build is not there; borrowed by start(). null: there is none
    std::vector<std::string> arguments;
    std::string working_folder;
    std::uint32_t uid = 0;
    std::vector<std::uint32_t> gids;
    std::string scratch_folder;
    std::vector<FolderGrant> grants;
    WorkerRules rules;
  };
  // How far a process has come: its program is being looked for; it runs, or cannot; or that build is neither there nor
  // stored, and the process ends without a word.
  enum class Begun : std::uint8_t { kPending, kRuns, kLacks };
  using ProcessId = std::int64_t;
  struct Started {
    ProcessId process = 0;
    Handle connection;  // our end of the socket it was born with; adopt() it
  };
  virtual ~Spawner() = default;
  // The process runs, or is about to: that its program cannot be run shows in how it ends. kIo and the like: none was
  // started.
  virtual Result<Started> start(const Order& order) = 0;
  virtual Begun begun(ProcessId) { return Begun::kRuns; }  // of one that exited() has not given; does not wait
  virtual void kill(ProcessId process) = 0;                // SIGKILL, with all its children
  // Whole lines that it has written on stdout and stderr since, at most `bytes` of them, or of a line that is longer.
  virtual std::string said(ProcessId, std::size_t /*bytes*/) { return {}; }
  virtual std::optional<WorkerExit> exited(ProcessId process) = 0;  // does not wait; once it is given, the id is gone
};

struct Config {
  std::uint32_t node = 0;  // NodeId
  std::string name;        // "lfs0"
  std::string cluster;     // id
  std::string root;        // absolute folder
  std::string uuid;        // of the root, 32 hex digits, as in pif.toml; empty: any (tests)
  KeyRing key;
  std::function<void()> look_at_keys;  // about once a second: brings `key` up to date; may be empty
  proto::Endpoints endpoints;          // as others see it
  proto::Endpoints server;             // where the PIF Server is; all empty: work without one
  net::Route server_route = net::Route::kAuto;
  std::vector<proto::NodeInfo> peers;  // other LFSs, without a server to tell of them
  std::uint32_t uid = 0;               // whom this process runs as: without root, other users' workers are refused
  std::int64_t pid = 0;                // as others see it
  std::function<WorkerRules()> worker_rules;  // asked for each worker that starts; empty: those of WorkerRules
  // For a file system of several hosts. host: the name of this one in pif.toml. edition: returns the edition of
  // pif.toml here, and is called at each heartbeat. take_files: stores the files that the server's host has
  // (proto/server.proto "ClusterFile"); an error says why it does not.
  std::string host;
  std::function<std::uint64_t()> edition;
  std::function<Status(const google::protobuf::RepeatedPtrField<proto::ClusterFile>& files)> take_files;
  std::uint64_t log_bytes = 64u << 20;  // redo log; when it is half full it is checkpointed
  std::size_t sync_all_from =
      8;  // as many components that are sealed at once are made durable by one sync of the whole disk
  // From so many bytes on rows are read for their parity through descriptors, where those are passed: they cost more
  // than a few rows by message.
  std::uint64_t near_from_bytes = 1u << 20;
};

// The interfaces through which the daemon reaches the world. All that they refer to outlives it.
struct World {
  net::Messenger& messenger;
  component::Storage& storage;
  kv::Store& catalogue;
  Executor& executor;
  Spawner& spawner;
  Entropy& entropy;
  std::function<void()> on_wake =
      {};                        // called on the loop's thread at Delivery::kWake: runs the executor's completions
  DiskHealth* health = nullptr;  // of `storage`, which is watched by it; null: nobody looks at it
  // Which of so many operations goes on first. Empty: the one that has been able to for longest.
  std::function<std::size_t(std::size_t count)> pick = {};
};

class Lfs {
 public:
  // The catalogue is open with kCatalogueTables. Nothing is read yet. Its end answers nobody, and leaves what is on the
  // disk to the next open().
  Lfs(Config config, World world);
  ~Lfs();

  // Reads the catalogue and recovers: replays the redo log, removes what no catalogue entry owns. Idempotent.
  // kVersion (another format), kCorrupt, kNotFound (no root there), kInvalid (another root).
  [[nodiscard]] Status open();
  // Serves until `stop` is set and the messenger woken. Errors only if it cannot go on, or is lost and asked to end.
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The file system and the node that a root belongs to.
struct RootIdentity {
  std::string cluster;
  std::uint32_t node = 0;
  std::string name;
  std::string uuid;  // empty: any (tests)
};
// Makes a root in a folder that is empty but for `lock` and logs, and an empty catalogue. Nothing happens to one that
// has this identity already. kExists: there is something else; kInvalid: another root.
[[nodiscard]] Status make_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                               const RootIdentity& identity);
// Takes over, once, a root that an earlier release wrote (format 1).
[[nodiscard]] Status adopt_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                                const RootIdentity& identity);

// `pif-lfs check ROOT`: without any daemon, reads catalogue, files and all sums under a root that no daemon has open,
// after it has replayed its redo log.
struct CheckReport {
  std::uint64_t components = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> damages;
  std::uint64_t quarantined = 0;       // components of files that the server did not know, kept for a while
  std::vector<std::string> leftovers;  // what a crash may leave, and the next start removes: no damage
};
// verify_sums: reads every byte; else only what files there are and how long they are. An error: it cannot be read at
// all (kNotFound: no root is there; kVersion, kCorrupt, kIo); what is wrong in it is in the report, up to a bound on
// lines.
[[nodiscard]] Result<CheckReport> check_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                                             bool verify_sums);

}  // namespace pif::lfs
