// Daemons as processes of this machine, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "daemons/daemons.h"
#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::cli {

// At most so many bytes of an open file from there on; `name` is for messages.
[[nodiscard]] Result<std::string> read_some(int fd, off_t offset, std::size_t bytes, const std::string& name);
// "pif-lfs"
std::string program_of(const Daemon& daemon);
// Whether the process runs that program for that user. False also if it has ended.
bool runs_for(pid_t pid, const std::string& program, uid_t user);

// A process that serves a daemon's folder, found by its command line.
struct Stray {
  std::string name;  // of the daemon
  pid_t pid = 0;
  UniqueFd process;
};
// All of `owner` that run one of these daemons, whether they hold a lock or not.
std::vector<Stray> strays_of(const std::vector<Daemon>& daemons, uid_t owner);

}  // namespace pif::cli
