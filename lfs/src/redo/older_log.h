// log/redo.log, in which earlier releases kept overwrites that were not in place yet (docs/FORMAT.md "Redo log of
// earlier releases"). It is read once.
#pragma once

#include <string>

#include "redo/redo_log.h"

namespace pif::lfs {

// Hands over the entries of the log at `path` from the front. The number of the last one, or of the head; 0: there is
// no such log, or it was never finished being made. kCorrupt: it has entries, but no whole head; kVersion.
[[nodiscard]] Result<std::uint64_t> replay_older_log(component::Storage& storage, const std::string& path,
                                                     const RedoLog::Replay& replay);

}  // namespace pif::lfs
