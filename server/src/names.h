// Paths as the directory takes them apart. Pure.
#pragma once

#include <string_view>

#include "pif/base/path.h"

namespace pif::server {

struct Split {
  std::string_view folder;  // as check_path() gives it
  std::string_view name;
};
// path: as check_path() gives it, not the root.
Split split(std::string_view path);
// For messages to people: the root is "/".
inline std::string_view shown(std::string_view path) { return path.empty() ? std::string_view("/") : path; }

}  // namespace pif::server
