// Which release this is.
#pragma once

#include <string_view>

namespace pif {

// "0.1.0"
std::string_view version();

}  // namespace pif
