// Worker processes of the real world.
#pragma once

#include <memory>
#include <string>

#include "pif/lfs/lfs.h"

namespace pif::lfs {

// helper_path: absolute path of pif-exec, which sets user, process group, parent-death signal and limits, and then
// executes the worker's program.
std::unique_ptr<Spawner> make_real_spawner(std::string helper_path);

}  // namespace pif::lfs
