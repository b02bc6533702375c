// Worker processes of the real world.
#pragma once

#include <memory>
#include <string>

#include "pif/lfs/lfs.h"

namespace pif::lfs {

// helper_path: absolute path of pif-exec, which sets user, process group, parent-death signal and limits, and then
// executes the worker's program; it is not looked for before the first worker. Workers that run when it goes are
// killed and waited for. worker_listen: where workers may listen for those of other machines
// ("tcp://ADDRESS:FIRST-LAST", or "tcp://ADDRESS:0" for any port), which they find in $PIF_WORKER_LISTEN; empty: they
// are not reported. Used by the loop's thread.
std::unique_ptr<Spawner> make_real_spawner(std::string helper_path, std::string worker_listen = {});

}  // namespace pif::lfs
