// Appending to a committed file, together with others (docs/PROTOCOL.md "Append"): LFS 0 of the file grants a range of
// records, every LFS makes its rows durable, and LFS 0 publishes the new length. For a file with parity, others stand
// in for LFSs that are absent in the view.
#pragma once

#include <cstdint>
#include <span>

#include "pif/base/clock.h"
#include "pif/base/format.h"
#include "pif/base/result.h"

namespace pif::client {

class FileState;

class Appender {
 public:
  explicit Appender(FileState& file) : file_(file) {}

  // lengths: variable records only. `fill`: bytes, which first fill up a short last record. `at_bytes`: only if the
  // file then is that long (kRetry otherwise). `until`: if that is earlier than the session's timeout allows. Returns
  // the file's length before it. For a file with parity it waits until then for an LFS that does not answer, or goes on
  // without one that is absent.
  [[nodiscard]] Result<FileLength> append(std::span<const std::uint32_t> lengths, std::span<const std::byte> data,
                                          bool fill, const std::uint64_t* at_bytes, Time until = kNever);

 private:
  bool follow_view(const Error& error, bool is_impossible, Time deadline, Duration& pause);

  FileState& file_;
  std::uint64_t terminated_at_ = 0;  // delimited: a length at which the last record was seen to have its delimiter
};

}  // namespace pif::client
