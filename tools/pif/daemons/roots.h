// The folders that pif.toml names: made once, and never again unless a person says so.
#pragma once

#include "pif/cluster/cluster.h"

namespace pif::cli {

// Makes the folders of a new file system, or takes over those of an earlier release, and writes down that they are
// there. Nothing happens to one that has them. For whoever has locked out other starters; `cluster` may be an older
// state of the description.
[[nodiscard]] Status make_ready(cluster::Cluster& cluster);
// Those of this host, of a new file system of several: again, too. Nothing is written down: whoever asks all hosts
// does.
[[nodiscard]] Status make_own_roots(const cluster::Cluster& cluster);
// That of one LFS of this host, added to a file system that runs, if it is not there. Empty: nothing happens.
[[nodiscard]] Status make_missing_root(const cluster::Cluster& cluster, const std::string& lfs);
// kNotFound, naming each folder that should be on this host and is not.
[[nodiscard]] Status check_roots_there(const cluster::Cluster& cluster);
// An empty root for one LFS, whose uuid in pif.toml is new.
[[nodiscard]] Status make_root_anew(const cluster::Cluster& cluster, const std::string& name);

}  // namespace pif::cli
