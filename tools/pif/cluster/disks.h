// --disk: several disks of one machine, each with LFSs of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

struct Disks {
  std::vector<std::string> folders;  // as they were typed
  std::uint32_t count = 0;           // of LFSs; 0: one on each
  std::uint32_t bevy = 0;
  bool force = false;  // also several folders of one disk, or companions on one
};

struct DiskPlan {
  std::vector<std::string> folders;  // real paths
  std::uint32_t count = 0;
};
// Where a new file system's roots will be. kNotFound names a disk that is not there; kInvalid: the LFSs cannot be as
// many on each, or the loss of one disk would be that of several.
[[nodiscard]] Result<DiskPlan> plan_disks(const Disks& disks);
// kInvalid if the file system has its roots elsewhere than on these disks.
[[nodiscard]] Status check_same_disks(const cluster::Cluster& cluster, const std::vector<std::string>& folders);

}  // namespace pif::cli
