// The mounts of this machine, as the process sees them (proc(5), mountinfo). Any thread.
#pragma once

#include <string>
#include <vector>

namespace pif::machine {

struct Mounted {
  std::string root;    // of the file system, that is seen at
  std::string at;      // this folder
  std::string type;    // "ext4", "fuse.pif-mount"
  std::string source;  // a device, or whatever its maker says
  std::string options;
};

// In the order in which they were mounted: of two at one folder the last is seen. None: it cannot be read. root: as of
// group_cores() in limits.h.
std::vector<Mounted> all_mounted(const std::string& root = "");

}  // namespace pif::machine
