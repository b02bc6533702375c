#include "stream.h"

#include <fmt/format.h>

namespace pif::component {

std::uint32_t chunk_bytes_for(const Format& format) {
  if (!format.is_fixed()) return kChunkBytesAim;
  return std::max<std::uint32_t>(1, kChunkBytesAim / format.record_length) * format.record_length;
}

Status validate(const Shape& shape) {
  PIF_TRY(shape.format.validate());
  const bool whole_rows = !shape.format.is_fixed() || shape.chunk_bytes % shape.format.record_length == 0;
  if (shape.chunk_bytes == 0 || shape.chunk_bytes > kRecordLengthMax || !whole_rows)
    return fail(Code::kInvalid, fmt::format("file {}: {} bytes cannot be the length of its chunks", shape.file.value,
                                            shape.chunk_bytes));
  return {};
}

Status validate(const Shape& shape, const Tail& tail) {
  PIF_TRY(validate(shape));
  constexpr std::uint64_t kFileBytesMax = INT64_MAX;
  if (tail.bytes > kFileBytesMax || tail.rows > kFileBytesMax / sizeof(std::uint64_t))
    return fail(Code::kCorrupt, fmt::format("file {}: no component can have {} rows and {} bytes", shape.file.value,
                                            tail.rows, tail.bytes));
  return {};
}

std::string Stream::place(std::uint64_t chunk, std::uint64_t length) const {
  const std::uint64_t begin = chunk * chunk_bytes;
  const std::uint64_t end = begin + size_of(chunk, length);
  const std::string_view name = id == kIndexStream ? "index chunk" : "chunk";
  if (row_bytes == 0 || end == begin)
    return fmt::format("file {}, {} {} (bytes {} to {})", file.value, name, chunk, begin, end - (end > begin ? 1 : 0));
  return fmt::format("file {}, {} {} (rows {} to {})", file.value, name, chunk, begin / row_bytes,
                     (end - 1) / row_bytes);
}

}  // namespace pif::component
