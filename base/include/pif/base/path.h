// The paths that the file system accepts. Every rule has its own error text. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif {

// The path as the directory uses it: "" for the root, else "/a/b", without the one slash that may end it: whoever looks
// the path up heeds that slash. kInvalid (kTooLarge for lengths) names the rule that is broken: empty, not absolute, an
// empty name, '.', '..', NUL, not UTF-8. The view is into `path`.
[[nodiscard]] Result<std::string_view> check_path(std::string_view path);

// Bytes of the well-formed UTF-8 character that the text begins with; 0: it begins with none.
std::size_t character_bytes(std::string_view text);
// Well-formed UTF-8 without overlong forms and surrogates.
bool is_utf8(std::string_view text);
// The text with U+FFFD for each byte that belongs to no well-formed character: what others said may be anything, and a
// message with a string that is not UTF-8 is not understood.
std::string to_utf8(std::string_view text);

}  // namespace pif
