// up, down and init of a file system of several hosts.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "command/program.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

struct HostsOptions {
  std::string rsh;           // as RemoteShell takes it
  std::string hosts;         // "h1,h2=10.0.0.2": names, and addresses where these are others
  std::string client_hosts;  // likewise, of hosts without an LFS
  std::string own;           // which of them this is; empty: by its addresses
  std::string worker_ports = "7500-7999";
  std::uint32_t lfss_per_host = 1;
  std::uint16_t port = 7400;
};

void add_rsh_option(CLI::App* command, HostsOptions& options);
void add_hosts_options(CLI::App* command, HostsOptions& options);

Outcome init_hosts(const Program& program, const std::string& folder, std::uint32_t bevy, const HostsOptions& options);
Outcome up_hosts(const Program& program, cluster::Cluster cluster, const HostsOptions& options);
Outcome down_hosts(const Program& program, const cluster::Cluster& cluster, const HostsOptions& options);

// For later commands: that fails only where a home cannot be written to, which is no reason to fail.
void remember(const Program& program, const cluster::Cluster& cluster);

}  // namespace pif::cli
