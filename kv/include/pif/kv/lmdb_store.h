#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pif/kv/store.h"

namespace pif::kv {

// Opens (making it if missing) the LMDB environment in folder `path` with these tables. Default flags: a commit is
// durable. Errors name the path: kIo, kReadOnly, kCorrupt (truncated or not LMDB), kNoSpace, kVersion.
[[nodiscard]] Result<std::unique_ptr<Store>> open_lmdb(const std::string& path, std::vector<std::string> tables);

}  // namespace pif::kv
