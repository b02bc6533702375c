// The errno that programs get for each error of the file system (docs/MOUNT.md).
#pragma once

#include "pif/base/result.h"

namespace pif::mount {

int errno_of(Code code);

}  // namespace pif::mount
