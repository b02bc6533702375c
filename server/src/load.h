// What the server reads when it starts, and writes into a new directory.
#pragma once

#include "core.h"

namespace pif::server {

// kVersion: written by a newer release; kInvalid: another file system's; kCorrupt.
[[nodiscard]] Status load(Core& core);

// Keys of the table "meta", besides those of folders.
inline constexpr std::string_view kVersionKey = "version";
inline constexpr std::string_view kClusterKey = "cluster";

}  // namespace pif::server
