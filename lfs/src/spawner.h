// Worker processes of the real world: posix_spawn of the static helper pif-exec, which sets user, process group,
// parent-death signal and limits, and then executes the tool.
#pragma once

#include <memory>
#include <string>

#include "pif/lfs/lfs.h"

namespace pif::lfs {

// helper_path: absolute path of pif-exec.
std::unique_ptr<Spawner> make_real_spawner(std::string helper_path);

}  // namespace pif::lfs
