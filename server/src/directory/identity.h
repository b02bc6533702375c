// The identity of the directory in a store: made, taken over from an earlier release, and checked at every start.
#pragma once

#include "directory/rows.h"
#include "pif/server/server.h"

namespace pif::server {

// kNotFound: the store is empty; kVersion: another release's; kInvalid: another file system's, or another directory of
// this one; kCorrupt.
[[nodiscard]] Status check_identity(Rows& rows, const DirectoryIdentity& identity);

}  // namespace pif::server
