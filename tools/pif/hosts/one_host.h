// The work of this host when a file system is started, stopped or looked at. Whoever asks all hosts asks the others
// through a remote shell (`pif host up DIR`) and this one by these calls: the answers are the same documents.
#pragma once

#include <cstdint>
#include <string>

#include "command/program.h"
#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

// The file system as the asking host knows it. Nothing, if a person asks.
struct KnownSystem {
  std::string id{};
  std::uint64_t edition = 0;     // of pif.toml
  std::uint64_t key_number = 0;  // of keys/cluster.key: how often it was changed
};

// Starts what does not run, and waits until it serves: {"host", "edition", "version", "daemons": [{"name", "pid",
// "started"}], "failed": [texts]}. `failed`: LFSs whose roots are not there, or that have ended; the others run. A host
// whose pif.toml or key is older starts nothing and has "behind": true. Errors: kBusy: one is newer here, or somebody
// else starts or stops; kInvalid: another file system, or one that is not ready; kNotFound: the server's root, or all
// LFSs', are not there; kUnavailable: the server, or all, have ended.
[[nodiscard]] Result<Json> up_here(const std::string& folder, const KnownSystem& known);
// {"host", "stopped": [names], "killed": [names]}.
[[nodiscard]] Result<Json> down_here(const std::string& folder);
// {"host", "edition", "version", "daemons": [{"name", "state": "running" or "down", "pid", "root"}]}.
[[nodiscard]] Result<Json> status_here(const std::string& folder);
// Files that this host is given; of a new file system, the roots of this host are made, and the root of `lfs` if it is
// not there. {"host", "edition", "version"}. kNotFound: the folder has never been given its own files.
[[nodiscard]] Result<Json> receive_here(const std::string& folder, const cluster::HostFiles& files,
                                        const std::string& lfs);

// The text of a malformed pif.toml is not the command line's fault: kCorrupt.
[[nodiscard]] Result<cluster::Cluster> load_system(const std::string& folder);

// Runs this host's daemons in the foreground until SIGTERM or SIGINT, and starts again what ends. kBusy: it runs
// already.
[[nodiscard]] Status run_here(const std::string& folder);

}  // namespace pif::cli
