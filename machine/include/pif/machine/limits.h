// Limits of this process on its machine: those of the kernel and of its control groups (cgroups(7)). Groups of version
// 1, of version 2, or of both at once, as many systems mount them; a container's limits are such groups'. Any thread.
// Each call reads some files: tens of microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pif::machine {

// Those that it may run on, by number; none: the kernel does not say.
std::vector<std::uint32_t> allowed_cores();
// By its affinity, and by the groups that it is in. At least 1.
unsigned usable_cores();
// Bytes that the machine has free, and that its groups can still get; files that are cached count as free. Nothing: it
// cannot be read.
std::optional<std::uint64_t> free_memory();

// The least of what the process's own groups and those above them allow; nothing: no limit, or it cannot be read.
// root: a folder that has proc/self/cgroup, proc/self/mountinfo and the mounted groups, "" for the process's own world.
std::optional<unsigned> group_cores(const std::string& root = "");  // of processor time, rounded up; at least 1
std::optional<std::uint64_t> group_memory(const std::string& root = "");

}  // namespace pif::machine
