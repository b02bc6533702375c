#include "pif/access/row_body.h"

#include <algorithm>
#include <cstring>

#include "pif/base/assert.h"

namespace pif::access {

net::Buffer RowBody::to_buffer() const {
  net::Buffer body(size());
  const std::size_t lengths_bytes = size() - data.size();
  if (lengths_bytes > 0) std::memcpy(body.data(), lengths.data(), lengths_bytes);
  if (!data.empty()) std::memcpy(body.data() + lengths_bytes, data.data(), data.size());
  return body;
}

std::vector<std::byte> gather(const FileParts& parts, const RowRange& rows, RecordNumber origin,
                              std::span<const std::byte> in) {
  const std::size_t length = parts.format.record_length;
  std::vector<std::byte> packed;
  packed.reserve(rows.rows * length);
  for (std::uint64_t i = 0; i < rows.rows; ++i) {
    const RecordNumber record = record_of(parts.layout, rows, i);
    PIF_ASSERT(record >= origin && (record - origin) * length < in.size(), record, origin, in.size());
    const std::size_t from = (record - origin) * length;
    const auto row = in.subspan(from, std::min(length, in.size() - from));
    packed.insert(packed.end(), row.begin(), row.end());
  }
  return packed;
}

}  // namespace pif::access
