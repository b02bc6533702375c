// The plan of a new file system of several hosts.
#pragma once

#include <string>
#include <vector>

#include "hosts/hosts_commands.h"
#include "pif/base/result.h"

namespace pif::cli {

// For cluster::create_cluster(): the server is on the first host, LFSs go round host by host, each with a port of its
// own. folder: the same on all hosts, absolute. kInvalid, naming hosts: twice the same, two with one address, or none
// that is this machine.
[[nodiscard]] Result<cluster::Cluster> plan_hosts(const std::string& folder, const HostsOptions& options);

// "h1,h2=10.0.0.2": names and addresses. kInvalid says which part is wrong.
[[nodiscard]] Result<std::vector<cluster::HostEntry>> parse_hosts(const std::string& list, const std::string& folder);

// Which of the hosts has an address of this machine's; kInvalid if that is none, or several.
[[nodiscard]] Result<std::string> find_own_host(const std::vector<cluster::HostEntry>& hosts);

}  // namespace pif::cli
