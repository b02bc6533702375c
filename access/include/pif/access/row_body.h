// Rows as the body of a message (docs/PROTOCOL.md "LFS operations").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pif/access/file_parts.h"
#include "pif/access/row_range.h"
#include "pif/base/limits.h"
#include "pif/net/buffer.h"

namespace pif::access {

// Rows that are put together for a message. The body is: lengths, 32 bits each, then the rows.
struct RowBody {
  std::vector<std::uint32_t> lengths;  // of the rows; none with fixed records
  std::vector<std::byte> data;         // the rows, packed

  // Bytes of the body.
  std::size_t size() const { return lengths.size() * sizeof(std::uint32_t) + data.size(); }
  // The body itself.
  net::Buffer to_buffer() const;
};

// How many rows of this length are moved by one message.
inline std::uint64_t rows_per_message(std::uint32_t record_length) {
  return std::max<std::uint64_t>(1, kBulkBytes / record_length);
}

// The fixed records of `rows` that are in `in`, packed. in: consecutive records from
// `origin` on, of which the last may be short: it is so in the result, too, if it is the last of `rows`.
std::vector<std::byte> gather(const FileParts& parts, const RowRange& rows, RecordNumber origin,
                              std::span<const std::byte> in);

}  // namespace pif::access
