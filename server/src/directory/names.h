// Paths as the directory takes them apart. Pure.
#pragma once

#include <algorithm>
#include <string_view>

#include "pif/base/path.h"

namespace pif::server {

struct Split {
  std::string_view folder;  // as check_path() gives it
  std::string_view name;
};
// path: as check_path() gives it, not the root.
Split split(std::string_view path);
// Where the name ends that begins after this slash of a checked path.
inline std::size_t name_end(std::string_view path, std::size_t slash) {
  return std::min(path.find('/', slash + 1), path.size());
}
// Whether the path means a folder and nothing else: a slash ends it.
inline bool means_folder(std::string_view path) { return path.ends_with('/'); }
// For messages to people: the root is "/".
inline std::string_view shown(std::string_view path) { return path.empty() ? std::string_view("/") : path; }

}  // namespace pif::server
