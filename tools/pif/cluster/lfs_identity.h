// The LFS that a root folder belongs to.
#pragma once

#include <map>
#include <string>

namespace pif::cli {

// "key = value" lines of an lfs.toml (docs/FORMAT.md); none if it cannot be read.
std::map<std::string, std::string> identity_of(const std::string& path);

}  // namespace pif::cli
