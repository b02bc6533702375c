// The file system that is mounted, where, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif::mount {

struct MountOptions {
  std::string where;        // as ConnectOptions::where
  std::string mount_point;  // absolute
  bool foreground = false;
  bool read_only = false;
  bool lazy = false;                        // new files wait here up to a second
  double attr_timeout = 1;                  // seconds that the kernel believes names and attributes
  std::uint64_t rewrite_max = 1024u << 20;  // bytes of a file that a change may copy
  std::vector<std::string> for_kernel;      // what mount(8) knows: "allow_other", "nodev", ...
  unsigned clients = 8;
};

ConnectOptions connect_options(const MountOptions& options);

// One list after -o: "ro,allow_other". kInvalid: it has a word that nobody knows.
[[nodiscard]] Status add_mount_words(const std::string& list, MountOptions& options);

}  // namespace pif::mount
