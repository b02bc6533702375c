// The format of a file's records, and the length of a file. Values and pure functions; any thread.
#pragma once

#include <cstdint>

#include "pif/base/ids.h"
#include "pif/base/limits.h"
#include "pif/base/result.h"

namespace pif {

enum class RecordKind : std::uint8_t {
  kFixed = 1,     // every record has record_length bytes; the last record of the file may be shorter
  kVariable = 2,  // records of any length from 0 to kRecordLengthMax
  kDelimited = 3  // variable records that end with `delimiter` (the last may lack it); text lines have '\n'
};

struct Format {
  RecordKind kind = RecordKind::kFixed;
  std::uint32_t record_length = kByteRecordLength;  // bytes; 0 unless kFixed
  std::uint8_t delimiter = 0;                       // 0 unless kDelimited

  // The four kinds as files have them; lines(): delimited by line ends. length: bytes of every record. Nothing is
  // checked: validate() does that.
  static constexpr Format fixed(std::uint32_t length) { return {RecordKind::kFixed, length, 0}; }
  static constexpr Format variable() { return {RecordKind::kVariable, 0, 0}; }
  static constexpr Format delimited(std::uint8_t c) { return {RecordKind::kDelimited, 0, c}; }
  static constexpr Format lines() { return delimited('\n'); }

  // Records of one length, whose places are arithmetic; without it there is an index (component.h).
  constexpr bool is_fixed() const { return kind == RecordKind::kFixed; }
  constexpr bool operator==(const Format&) const = default;

  // kInvalid if the length is 0 or over kRecordLengthMax, the kind is unknown, or a field is set that the kind has not.
  [[nodiscard]] Status validate() const;
};

// Length of a file: records and bytes. With fixed records the last one has bytes - (records - 1) * record_length bytes.
struct FileLength {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  constexpr bool operator==(const FileLength&) const = default;
};

// All with record_length >= 1. The length of a file of `bytes` bytes: the last record takes what is left.
FileLength fixed_file_length(std::uint32_t record_length, std::uint64_t bytes);
// Whether so many fixed records of a file or component can have so many bytes; none has over INT64_MAX.
bool is_fixed_file_length(std::uint32_t record_length, const FileLength& file_length);
// Bytes of record n of a file of this length; 0 past its end.
std::uint32_t fixed_record_bytes(std::uint32_t record_length, const FileLength& file_length, RecordNumber n);

}  // namespace pif
