// The folder that a file system is mounted on, as the kernel sees it.
#pragma once

#include <sys/ioctl.h>

#include <string>

#include "pif/base/result.h"

namespace pif::mount {

// The attribute of a mount's root that names its process.
inline constexpr unsigned long kAskProcess = _IOR('p', 0xf1, int);

// Absolute, without links. A mount whose process died there is taken away first. kNotDirectory, kNotFound; kBusy: this
// file system is mounted there already.
[[nodiscard]] Result<std::string> prepare_mount_point(const std::string& folder);
// Ends the mount, and waits for its process to send everything. kBusy: programs use it.
[[nodiscard]] Status unmount(const std::string& folder);

}  // namespace pif::mount
