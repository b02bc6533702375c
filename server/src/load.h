// Reads the directory when the server starts.
#pragma once

#include "context/server_context.h"

namespace pif::server {

// kVersion: written by a newer release; kInvalid: another file system's; kCorrupt.
[[nodiscard]] Status load(ServerContext& context);

}  // namespace pif::server
