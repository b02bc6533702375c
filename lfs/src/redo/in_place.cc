#include "redo/in_place.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::lfs {

namespace {

// Sum: of chunk first_chunk + i, which has these bytes.
template <typename Sum>
Status write_chunks(const component::Shape& shape, component::Files& files, std::uint64_t first_chunk,
                    std::span<const std::byte> bytes, component::Tail& tail, const Sum& sum_of) {
  const std::uint64_t chunk_bytes = shape.chunk_bytes, begin = first_chunk * chunk_bytes;
  PIF_ASSERT(begin + bytes.size() <= tail.bytes, begin, bytes.size(), tail.bytes);
  std::vector<std::uint64_t> sums;
  for (std::uint64_t at = 0; at < bytes.size(); at += chunk_bytes) {
    const auto chunk = bytes.subspan(at, std::min<std::uint64_t>(chunk_bytes, bytes.size() - at));
    const std::uint64_t sum = sum_of(at / chunk_bytes, chunk);
    if (chunk.size() == chunk_bytes)
      sums.push_back(sum);
    else
      tail.data_sum = sum;
  }
  PIF_ASSERT(sums.size() == bytes.size() / chunk_bytes, sums.size(), bytes.size());
  PIF_TRY(files.data->write(begin, bytes));
  if (sums.empty()) return {};
  return component::write_sums(shape, files, first_chunk, sums);
}

}  // namespace

Status write_in_place(const component::Shape& shape, component::Files& files, std::uint64_t first_chunk,
                      std::span<const std::byte> bytes, component::Tail& tail) {
  PIF_ASSERT(shape.chunk_bytes > 0);
  const std::uint64_t begin = first_chunk * shape.chunk_bytes;
  if (begin >= tail.bytes) return {};
  return write_chunks(shape, files, first_chunk, bytes.first(std::min<std::uint64_t>(bytes.size(), tail.bytes - begin)),
                      tail, [&](std::uint64_t i, auto chunk) { return shape.data_sum(first_chunk + i, chunk); });
}

Status change_in_place(const component::Shape& shape, component::Files& files, std::uint64_t first_chunk,
                       const Changes& changes, component::Tail& tail) {
  PIF_ASSERT(shape.chunk_bytes > 0);
  const std::uint64_t begin = first_chunk * shape.chunk_bytes;
  if (begin >= tail.bytes) return {};
  // What is behind the end of a file that was cut off is zeros here, and no sum will hold.
  std::vector<std::byte> bytes(std::min(changes.bytes, tail.bytes - begin));
  PIF_TRY(files.data->read(begin, std::span(bytes)));
  changes.apply(bytes);
  return write_chunks(shape, files, first_chunk, bytes, tail, [&](std::uint64_t i, auto chunk) {
    const bool is_all =
        chunk.size() == std::min<std::uint64_t>(shape.chunk_bytes, changes.bytes - i * shape.chunk_bytes);
    return is_all ? changes.sum(i) : shape.data_sum(first_chunk + i, chunk);
  });
}

Status sync_data_and_sums(component::Files& files) {
  PIF_ASSERT(files.data && files.sums);
  PIF_TRY(files.data->sync());
  return files.sums->sync();
}

}  // namespace pif::lfs
