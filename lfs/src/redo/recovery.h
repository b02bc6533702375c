// Recovers a root before it is served: replays the redo log, and puts aside what a dead process left half-made.
// Everything here may be interrupted and done again.
#pragma once

#include "pif/component/storage.h"
#include "pif/kv/store.h"
#include "redo/redo_log.h"

namespace pif::lfs {

// Opens `log`, replays its entries, makes in-place data and tail sums durable, and starts the log over. A log of an
// earlier release comes first, and is removed.
[[nodiscard]] Status replay_log(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                                RedoLog& log);

// Puts aside (aside.h) components' files under data/ that no entry of the catalogue owns, and removes everything under
// scratch/. now: wall seconds.
[[nodiscard]] Status clear_leftovers(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                                     std::int64_t now);

}  // namespace pif::lfs
