#pragma once

#include <memory>

#include "pif/component/storage.h"

namespace pif::component {

// The machine's own file system. Errors are those of its calls (base/result.h: code_from_errno), and name the path.
// Folders that were locked (Storage::lock) are so until it is destroyed. Any thread.
std::unique_ptr<Storage> make_real_storage();

}  // namespace pif::component
