// Where a user's programs keep what is the user's own.
#pragma once

#include <string>

#include "pif/base/result.h"

namespace pif::cluster {

// The variable's value; empty if it is not set.
std::string environment(const char* name);
// The folder "pif" in the one that the variable names, or else in HOME/`in_home`; empty if the user has no home.
std::string user_folder(const char* variable, const std::string& in_home);
// The user has no default any more, if it is this folder.
[[nodiscard]] Status forget_default(const std::string& folder);

}  // namespace pif::cluster
