#include "stream/stream.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "pif/base/assert.h"

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
  if (shape.form > kFormMax)
    return fail(Code::kVersion,
                fmt::format("file {} is of form {}: a newer pif is needed", shape.file.value, shape.form));
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

void Stream::load_sums(std::span<std::uint64_t> words, std::size_t count) const {
  PIF_ASSERT(count * sum_words() <= words.size(), count, words.size());
  if (!has_stamps) return;
  for (std::size_t i = 0; i < count; ++i) words[i] = words[2 * i] ^ stamp_mix(words[2 * i + 1]);
}

Status Stream::write_sums(std::uint64_t chunk, std::span<const std::uint64_t> of_chunks) const {
  PIF_ASSERT(sums != nullptr, id, chunk);
  if (!has_stamps) return sums->write(chunk * sum_bytes(), std::as_bytes(of_chunks));
  std::array<std::uint64_t, 1024> words;
  while (!of_chunks.empty()) {
    const std::size_t count = std::min(of_chunks.size(), words.size() / 2);
    for (std::size_t i = 0; i < count; ++i) {
      words[2 * i] = with_stamp_0(of_chunks[i]);
      words[2 * i + 1] = 0;
    }
    PIF_TRY(sums->write(chunk * sum_bytes(), std::as_bytes(std::span(words.data(), 2 * count))));
    chunk += count;
    of_chunks = of_chunks.subspan(count);
  }
  return {};
}

Status write_sums(const Shape& shape, Files& files, std::uint64_t first_chunk, std::span<const std::uint64_t> sums) {
  const Stream stream = Stream::data_of(shape, files);
  std::vector<std::uint64_t> plain(sums.begin(), sums.end());
  for (std::uint64_t& sum : plain) sum = stream.with_stamp_0(sum);
  return stream.write_sums(first_chunk, plain);
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
