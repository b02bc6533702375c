// Worker processes of the real world: posix_spawn of the static helper pif-exec, which sets user, process group,
// parent-death signal and limits, and then executes the tool. Declared for main in the public header.
#pragma once

#include "pif/lfs/real_spawner.h"
