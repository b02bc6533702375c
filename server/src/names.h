// What a path may look like. Every rule has its own error text. Pure.
#pragma once

#include <string_view>

#include "pif/base/result.h"

namespace pif::server {

// The path as the directory uses it: "" for the root, else "/a/b". One trailing slash is forgiven. kInvalid (kTooLarge for
// lengths) names the rule that is broken. The view is into `path`.
[[nodiscard]] Result<std::string_view> check_path(std::string_view path);

struct Split {
  std::string_view folder;  // as check_path() gives it
  std::string_view name;
};
// path: as check_path() gives it, not the root.
Split split(std::string_view path);
// For messages to people: the root is "/".
inline std::string_view shown(std::string_view path) { return path.empty() ? std::string_view("/") : path; }

// Well-formed UTF-8 without overlong forms and surrogates.
bool is_utf8(std::string_view text);

}  // namespace pif::server
