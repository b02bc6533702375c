// The cluster's key is changed: on all hosts the new one is accepted, then it signs.
#pragma once

#include <cstdint>

#include "command/program.h"
#include "hosts/remote_shell.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

// Changes the key, or goes on where an earlier call has stopped; the caller holds lock_out_starters(). The key before
// is good for `seconds` more. A change of which that time is not over yet is not followed by another one: the key is
// sent to the other hosts again. kUnavailable, after a line for each host that has not got the key: nothing is refused
// because of that, and to ask again goes on.
[[nodiscard]] Status change_key(const Program& program, const cluster::Cluster& cluster, const RemoteShell& shell,
                                std::int64_t seconds);
// Whether a change has begun here and not ended.
[[nodiscard]] Result<bool> is_key_changing(const cluster::Cluster& cluster);

}  // namespace pif::cli
