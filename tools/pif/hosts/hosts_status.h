// The hosts of a file system, as `pif status` shows them.
#pragma once

#include <string>

#include "command/program.h"
#include "hosts/remote_shell.h"
#include "pif/client/client.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

// A server that answers knows how its hosts are: [{"name", "address", "folder", "daemons", "up", "clock_ahead"}], and
// the same as a table. clock_ahead: seconds before the server's clock, of the LFS that is furthest off.
Json hosts_json(const cluster::Cluster& cluster, const SystemStatus& status);
std::string hosts_table(const cluster::Cluster& cluster, const SystemStatus& status);

// The server does not answer: each host is asked which daemons run there, and what it says is printed. Errors: of
// writing.
[[nodiscard]] Status print_hosts_down(const Program& program, const cluster::Cluster& cluster,
                                      const RemoteShell& shell);

}  // namespace pif::cli
