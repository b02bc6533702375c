// Records of a file at once, of whatever kind they are. The controller's side.
#pragma once

#include <cstdint>

#include "pif/base/result.h"
#include "pif/client/client.h"

namespace pif::tool {

// Records from `begin` on, below file_length.records: at most `count`, about a MiB of them, but at least one. Errors:
// as File::read_at().
[[nodiscard]] Result<RecordBatch> read_records(File& file, const FileLength& file_length, RecordNumber begin,
                                               std::uint64_t count);

}  // namespace pif::tool
