// CSV text into a file of variable records (pif/tool/csv.h).
#pragma once

#include <string>

#include "pif/client/bulk.h"

namespace pif::cli {

// All records from `fd`, behind the header record, into a file being created of variable records; a last one without a
// line break gets one. options: `progress` and `cancel` count. kCorrupt: a quote is not closed; kTooLarge: a record
// over kRecordLengthMax; else the errors of `fd` and of File::write_batch().
[[nodiscard]] Result<BulkCounts> import_csv(File& file, int fd, const std::string& name, const BulkOptions& options);

}  // namespace pif::cli
