// The folders that pif.toml names: made once, and never again unless a person says so.
#pragma once

#include <vector>

#include "daemons/daemons.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

// Makes the folders of a new file system, or takes over those of an earlier release, and writes down that they are
// there. Nothing happens to one that has them. For whoever has locked out other starters; `cluster` may be an older
// state of the description.
[[nodiscard]] Status make_ready(cluster::Cluster& cluster);
// Those of this host, of a new file system of several: again, too. Nothing is written down: whoever asks all hosts
// does.
[[nodiscard]] Status make_own_roots(const cluster::Cluster& cluster);
// Makes the root of one LFS of this host, added to a file system that runs, if it is not there. Empty: nothing happens.
[[nodiscard]] Status make_missing_root(const cluster::Cluster& cluster, const std::string& lfs);
// kNotFound, naming each folder that should be on this host and is not.
[[nodiscard]] Status check_roots_there(const cluster::Cluster& cluster);
// Whether the daemon's folder has what it needs: else its disk is not mounted, or lost, and nothing may be made there.
bool has_root(const Daemon& daemon);
// This host's daemons whose folders are there: the others can serve meanwhile. kNotFound, as above, where that is
// nothing: the server's folder is missing, or those of all LFSs.
[[nodiscard]] Result<std::vector<Daemon>> daemons_with_roots(const cluster::Cluster& cluster);
// Makes the file system's folder on a new disk (cluster::disk_folder) that `root` will be in, if it is not there.
// kNotFound: no disk is mounted there.
[[nodiscard]] Status make_disk_folder(const cluster::Cluster& cluster, const std::string& root);
// An empty root for one LFS, whose uuid in pif.toml is new.
[[nodiscard]] Status make_root_anew(const cluster::Cluster& cluster, const std::string& name);

}  // namespace pif::cli
