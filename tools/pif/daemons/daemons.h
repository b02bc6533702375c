// The daemons of a file system on this machine as processes: started, found by the lock each holds, stopped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/handle.h"
#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

// Seconds between the clocks of an LFS and the server: more than a heartbeat takes, less than rights allow for.
inline constexpr std::int64_t kClocksApart = 5;

struct Daemon {
  std::string name;                    // "server", "lfs0"
  std::string folder;                  // its own: log and lock are in it
  std::vector<std::string> arguments;  // argv[0] is the program's absolute path
  std::string socket{};                // where it answers
  // The folder of another file system that uses `folder`, too, and had it last (cluster::other_user_of); empty: none.
  std::string other_user{};
  std::string log() const { return folder + "/" + name + ".log"; }
  std::string lock() const { return folder + "/lock"; }
};

// Those of this host: the PIF Server first, then the LFSs in order. `programs`: folder with pif-server and pif-lfs.
std::vector<Daemon> daemons_of(const cluster::Cluster& cluster, const std::string& programs);
// `pif host run` of this host: nobody runs it as a daemon, but it has a lock, and is stopped like one.
Daemon runner_of(const cluster::Cluster& cluster, const std::string& programs);

// The user whose file system it is: who owns pif.toml. A symbolic link is its owner's, whatever it leads to.
[[nodiscard]] Result<uid_t> owner_of(const cluster::Cluster& cluster);

// Process id of the running daemon: of who holds its lock. Nothing if nobody does, whatever the file says, or if it is
// another file system's daemon. A holder that has not written its id yet counts as 0. A daemon that was killed holds
// its lock until all of its threads have ended: answers() tells.
[[nodiscard]] Result<std::optional<pid_t>> holder(const Daemon& daemon);

// Whether it answers on its socket within this time. Blocks.
bool answers(const Daemon& daemon, std::chrono::milliseconds patience);
// kExists if another file system uses a folder of these daemons (cluster::check_unshared).
[[nodiscard]] Status check_unshared(const cluster::Cluster& cluster);

// Nobody else looks which daemons are missing and starts them as long as this lives. kBusy if another has not done so
// at the deadline.
[[nodiscard]] Result<UniqueFd> lock_out_starters(const cluster::Cluster& cluster, std::chrono::milliseconds deadline);

// Starts it in a session of its own, with its log as stdout and stderr and nothing else open. notify: its
// $NOTIFY_SOCKET; empty: none.
[[nodiscard]] Result<pid_t> start(const Daemon& daemon, const std::string& notify);

// Asks all to stop, and waits until their locks are free; kills those that have not let go at the deadline. Only
// processes that run the daemon's program for `owner` are sent a signal, whatever the locks say: kPermission names a
// lock whose holder is not known for such a one until the deadline. Those whose lock was removed are found, too.
struct Stopped {
  std::vector<std::string> asked;   // names of all that ran
  std::vector<std::string> killed;  // of these
};
[[nodiscard]] Result<Stopped> stop(const std::vector<Daemon>& daemons, uid_t owner, std::chrono::milliseconds deadline);

// How long a file system may take to start and to stop.
inline constexpr std::chrono::seconds kSystemUpDeadline{20}, kSystemDownDeadline{10};
// All daemons of a file system on this host, with what restarts them, and the folder of its sockets if that is in /tmp.
// Waits for one that is starting them.
[[nodiscard]] Result<Stopped> take_down(const cluster::Cluster& cluster);

// The last line of the log that says something, for messages; empty if there is none.
std::string last_log_line(const Daemon& daemon);
// Bytes of the log so far.
std::uint64_t log_size(const Daemon& daemon);
// Why a process of the daemon has ended, for messages: its signal, or else the last error in what it has logged since
// the log had `log_begin` bytes, or else its exit code. status: as waitpid() gives it.
std::string reason_of_end(const Daemon& daemon, std::uint64_t log_begin, int status);

}  // namespace pif::cli
