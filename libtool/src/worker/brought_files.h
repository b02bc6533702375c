// Files that a tool's user brings to its workers (--file).
#pragma once

#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::tool {

// Writes it into $TMPDIR, the folder that the worker's LFS made for it alone. kInvalid: no name for a file, or the
// folder is not there; else what the disk says.
[[nodiscard]] Status keep_brought_file(const std::string& name, std::string_view content);

}  // namespace pif::tool
