// Which release this is.
#pragma once

#include <string_view>

namespace pif {

// The release that this code is built of, "0.1.0"; valid for ever. docs/PROTOCOL.md has the protocol's own version.
std::string_view version();

}  // namespace pif
