// Numbers as people type them. Pure.
#pragma once

#include <string>

namespace pif {

// The text without the zeros in front of another digit: 0100 means a hundred to whoever types it, and 64 to strtol.
// Made to be the first transformation of every option that is a number.
std::string decimal(std::string text);

}  // namespace pif
