// Whole files in and out of a file system: what `pif put` and `pif get` do. Local data comes from a descriptor of this
// process: a regular file (read and written by several threads, in large pieces) or anything else (in order).
// Memory is bounded whatever the size of the file. Called on the thread of the File.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "pif/base/ids.h"
#include "pif/base/result.h"
#include "pif/client/client.h"

namespace pif {

struct BulkCounts {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0;
};

struct BulkOptions {
  // Called on the caller's thread, now and then, with what is done; `bytes_total` is 0 if nobody knows.
  std::function<void(const BulkCounts& done, std::uint64_t bytes_total)> progress;
  const std::atomic<bool>* cancel = nullptr;  // set by anybody: ends with kCancelled
  std::uint64_t local_offset = 0;             // of a regular local file: where to begin
  Range records{0, UINT64_MAX};               // export only; clipped to the file
  // Export only, without `records`: these bytes of all records, clipped to the file. Counts of records are then of
  // those that were read for them.
  Range bytes{0, UINT64_MAX};
};

// All bytes from `fd` into a file being created, of any format; does not commit. Fixed records: the last one may be
// short. Variable ones must be delimited: kTooLarge, naming the offset, for one over kRecordLengthMax; kInvalid for
// kVariable, which has nothing to cut at. kCancelled as BulkOptions says; else the errors of `fd` and of File::write().
// After an error abort the file.
[[nodiscard]] Result<BulkCounts> import_stream(File& file, int fd, const BulkOptions& options = {});

// The bytes of the records, in order, to `fd`. A pipe is made as large as it may be, up to 1 MiB. The local file is
// neither truncated nor synced. Errors: kCancelled, those of `fd` and of File::read(); any part may have been written
// then.
[[nodiscard]] Result<BulkCounts> export_stream(File& file, int fd, const BulkOptions& options = {});

// The same to a function, which gets one block of bytes after another on the caller's thread, valid during its call,
// while the next ones are read. Its error ends the export, and is the outcome. It does not use the file or its Client.
using BlockSink = std::function<Status(std::span<const std::byte> block)>;
[[nodiscard]] Result<BulkCounts> export_blocks(File& file, const BlockSink& sink, const BulkOptions& options = {});

}  // namespace pif
