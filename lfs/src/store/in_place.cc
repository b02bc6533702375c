#include "store/in_place.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::lfs {

Status write_home(const component::Shape& shape, component::Files& files, std::uint64_t first_chunk,
                  std::span<const std::byte> bytes, component::Tail& tail) {
  const std::uint64_t chunk_bytes = shape.chunk_bytes;
  PIF_ASSERT(chunk_bytes > 0);
  const std::uint64_t begin = first_chunk * chunk_bytes;
  if (begin >= tail.bytes) return {};
  bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), tail.bytes - begin));
  std::vector<std::uint64_t> sums;
  for (std::uint64_t at = 0; at < bytes.size(); at += chunk_bytes) {
    const auto chunk = bytes.subspan(at, std::min<std::uint64_t>(chunk_bytes, bytes.size() - at));
    const auto sum = shape.data_sum(first_chunk + at / chunk_bytes, chunk);
    if (chunk.size() == chunk_bytes)
      sums.push_back(sum);
    else
      tail.data_sum = sum;
  }
  PIF_ASSERT(sums.size() == bytes.size() / chunk_bytes, sums.size(), bytes.size());
  PIF_ASSERT(begin + bytes.size() <= tail.bytes, begin, bytes.size(), tail.bytes);
  PIF_TRY(files.data->write(begin, bytes));
  if (sums.empty()) return {};
  return component::write_sums(shape, files, first_chunk, sums);
}

Status sync_home(component::Files& files) {
  PIF_ASSERT(files.data && files.sums);
  PIF_TRY(files.data->sync());
  return files.sums->sync();
}

}  // namespace pif::lfs
