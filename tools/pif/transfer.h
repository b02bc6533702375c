// Bytes between local descriptors and interleaved files, from and to where the descriptor stands.
#pragma once

#include <cstdint>

#include "pif/base/ids.h"
#include "pif/client/bulk.h"
#include "pif/client/client.h"
#include "progress.h"

namespace pif::cli {

inline constexpr Range kAllRecords{0, UINT64_MAX};

// Reads `fd` to its end into a file being created.
[[nodiscard]] Result<BulkCounts> fill(File& file, int fd, Progress& progress, const std::atomic<bool>* cancel);

// Writes the bytes of records `range` (clipped to the file) to `fd`, and leaves it behind them.
[[nodiscard]] Result<BulkCounts> drain(File& file, Range range, int fd, Progress& progress);

}  // namespace pif::cli
