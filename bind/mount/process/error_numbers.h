// What programs get for an error of the file system: each code one errno (docs/MOUNT.md).
#pragma once

#include "pif/base/result.h"

namespace pif::mount {

int errno_of(Code code);

}  // namespace pif::mount
