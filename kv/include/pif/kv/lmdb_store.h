#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pif/kv/store.h"

namespace pif::kv {

// How the memory map grows. It is address space only, so the defaults are generous; tests use small ones.
struct LmdbGrowth {
  std::size_t map_bytes = std::size_t{1} << 30;           // first size; doubled when half full
  std::size_t headroom_bytes = 4 * kTransactionBytesMax;  // free at the start of every write transaction, at least
};

// Opens (making it if missing) the LMDB environment in folder `path` with these tables. Default flags: a commit is
// durable. A table without a name is the one in which LMDB keeps where the others begin: every commit writes that page,
// so that a row there costs none of its own. It is for a row or two with keys that no table has as its name, and not
// for scans. Errors name the path: kIo, kReadOnly, kCorrupt (truncated or not LMDB), kNoSpace, kVersion.
[[nodiscard]] Result<std::unique_ptr<Store>> open_lmdb(const std::string& path, std::vector<std::string> tables,
                                                       LmdbGrowth growth = {});

}  // namespace pif::kv
