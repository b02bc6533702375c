// Changing records of a committed file. It goes by message: the LFS has a redo log for it. Those of a file with parity
// cannot be changed: FileState::check_may_overwrite().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/access/requests.h"
#include "pif/access/row_range.h"

namespace pif::client {

class FileState;

class Overwriter {
 public:
  explicit Overwriter(FileState& file) : file_(file) {}

  // Fixed records that are all inside the file; `in` has their lengths (kInvalid otherwise). The requests are added and
  // started.
  [[nodiscard]] Status start(RecordNumber first, std::span<const std::byte> in, access::Requests& requests);
  // The same to its end. kRetry: the last record was filled up meanwhile.
  [[nodiscard]] Status overwrite(RecordNumber first, std::span<const std::byte> in);
  // Bytes inside one record.
  [[nodiscard]] Status overwrite_within(RecordNumber record, std::uint32_t within, std::span<const std::byte> in);
  // Variable records, which keep their lengths.
  [[nodiscard]] Status overwrite_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                       std::span<const std::byte> data);

 private:
  FileState& file_;
  std::vector<access::RowRange> ranges_;  // scratch of a batch
};

}  // namespace pif::client
