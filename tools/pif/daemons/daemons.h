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
  std::string log() const { return folder + "/" + name + ".log"; }
  std::string lock() const { return folder + "/lock"; }
};

// Those of this host: the PIF Server first, then the LFSs in order. `programs`: folder with pif-server and pif-lfs.
std::vector<Daemon> daemons_of(const cluster::Cluster& cluster, const std::string& programs);
// `pif host run` of this host: nobody runs it as a daemon, but it has a lock, and is stopped like one.
Daemon runner_of(const cluster::Cluster& cluster, const std::string& programs);

// The user whose file system it is: who owns pif.toml. A symbolic link is its owner's, whatever it leads to.
[[nodiscard]] Result<uid_t> owner_of(const cluster::Cluster& cluster);

// Process id of the running daemon: of who holds its lock. Nothing if nobody does, whatever the file says. A holder
// that has not written its id yet counts as 0.
[[nodiscard]] Result<std::optional<pid_t>> holder(const Daemon& daemon);

// Nobody else looks which daemons are missing and starts them as long as this lives. kBusy if another has not done so
// at the deadline.
[[nodiscard]] Result<UniqueFd> lock_out_starters(const cluster::Cluster& cluster, std::chrono::milliseconds deadline);

// Starts it in a session of its own, with its log as stdout and stderr and nothing else open. notify: its
// $NOTIFY_SOCKET; empty: none.
[[nodiscard]] Result<pid_t> start(const Daemon& daemon, const std::string& notify);

// Asks all to stop, and waits until their locks are free; kills those that have not let go at the deadline. Only
// processes that run the daemon's program for `owner` are sent a signal, whatever the locks say: kPermission names a
// lock whose holder is not known for such a one until the deadline.
struct Stopped {
  std::vector<std::string> asked;   // names
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

}  // namespace pif::cli
