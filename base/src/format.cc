#include "pif/base/format.h"

#include <fmt/format.h>
#include <unistd.h>

#include "pif/base/handle.h"

namespace pif {

Status Format::validate() const {
  if (delimiter != 0 && kind != RecordKind::kDelimited)
    return fail(Code::kInvalid, "a delimiter is given for records that are not delimited");
  switch (kind) {
    case RecordKind::kFixed:
      if (record_length == 0 || record_length > kRecordLengthMax)
        return fail(Code::kInvalid,
                    fmt::format("record length {} is not between 1 and {} bytes", record_length, kRecordLengthMax));
      return {};
    case RecordKind::kVariable:
    case RecordKind::kDelimited:
      if (record_length != 0) return fail(Code::kInvalid, "a record length is given for variable-length records");
      return {};
  }
  return fail(Code::kInvalid, fmt::format("unknown record kind {}", static_cast<int>(kind)));
}

FileLength fixed_file_length(std::uint32_t record_length, std::uint64_t bytes) {
  return {bytes / record_length + (bytes % record_length != 0 ? 1 : 0), bytes};
}

bool is_fixed_file_length(std::uint32_t record_length, const FileLength& file_length) {
  // No file has more bytes: the length of all its records, the last one whole, must fit into 64 bits.
  return file_length.bytes <= INT64_MAX && fixed_file_length(record_length, file_length.bytes) == file_length;
}

std::uint32_t fixed_record_bytes(std::uint32_t record_length, const FileLength& file_length, RecordNumber n) {
  if (n >= file_length.records) return 0;
  if (n + 1 < file_length.records) return record_length;
  return static_cast<std::uint32_t>(file_length.bytes - n * record_length);
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace pif
