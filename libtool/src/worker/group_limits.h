// What the kernel's control groups (cgroups(7)) leave to a process: of version 1, of version 2, or of both at once, as
// many systems mount them. A container's limits are such limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pif::tool {

// Nothing: no limit, or it cannot be read.
struct GroupLimits {
  std::optional<unsigned> cores;        // of processor time, rounded up; at least 1
  std::optional<std::uint64_t> memory;  // bytes that the group can still get; files that it has cached count as free
};

// The least of what the process's own groups and those above them allow. root: a folder that has proc/self/cgroup,
// proc/self/mountinfo and the mounted groups, "" for this process's own world.
GroupLimits group_limits(const std::string& root = "");

}  // namespace pif::tool
