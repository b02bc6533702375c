// A file system of two hosts on this machine.
#pragma once

#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "pif/cluster/cluster.h"

namespace pif::cluster {

// Loopback that is no other test's: all of 127/8 is this machine.
inline std::string own_address() {
  return fmt::format("127.77.{}.{}", (::getpid() >> 8) & 255, 1 + (::getpid() & 127));
}

// Of a file system of two hosts, where this is h1 in `folder`.
inline Cluster plan_of(const std::string& folder) {
  Cluster plan;
  plan.tcp = TcpMode::kCurve;
  plan.worker_ports = "any";
  plan.own_host = "h1";
  plan.hosts = {{"h1", own_address(), "", folder}, {"h2", "fd00::3", "", "/data/pif"}};
  plan.servers = {{1, "h1", 7400}};
  plan.lfss = {{1, "lfs0", "lfs0", "", "h1", 7401}, {2, "lfs1", "lfs1", "", "h2", 7401}};
  return plan;
}

}  // namespace pif::cluster
