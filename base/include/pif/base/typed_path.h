// Paths in the file system as people type them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif {

// "/a/b" or "pif:/a/b" as "/a/b", without doubled slashes and ".". A slash or a "." at the end stays as one slash: by
// it only a folder is meant (POSIX.1-2017, 4.13). kInvalid for relative ones, and for what check_path refuses.
[[nodiscard]] Result<std::string> parse_path(std::string_view text);

}  // namespace pif
