#include "redo/redo_pieces.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

struct StoredChanges {
  std::uint32_t bytes;      // of the chunks
  std::uint32_t run_bytes;  // of the encoded runs, which are behind the sums
};
static_assert(sizeof(StoredChanges) == 8);

std::uint64_t chunks_of(std::uint64_t bytes, std::uint64_t chunk_bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

void append(std::vector<std::byte>& out, const void* from, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  out.insert(out.end(), bytes, bytes + size);
}

}  // namespace

void ChangedBytes::add(std::size_t offset, std::size_t size) {
  PIF_ASSERT(offset + size <= bytes_, offset, size, bytes_);
  while (size > 0) {
    const std::size_t bit = offset % 64, count = std::min(size, 64 - bit);
    words_[offset / 64] |= (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << bit;
    offset += count;
    size -= count;
  }
}

std::size_t ChangedBytes::find(std::size_t from, bool changes) const {
  for (std::size_t word = from / 64; word < words_.size(); ++word) {
    std::uint64_t bits = changes ? words_[word] : ~words_[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << from % 64;
    if (bits != 0) return std::min(bytes_, word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }
  return bytes_;
}

Range ChangedBytes::next(std::size_t from) const {
  const std::size_t begin = find(from, true);
  return {begin, find(begin, false)};
}

std::optional<std::vector<std::byte>> encode_changes(const component::Shape& shape, std::uint64_t first_chunk,
                                                     std::span<const std::byte> image, const ChangedBytes& changed) {
  patterns::RunEncoder encoder;
  for (Range range = changed.next(0); !range.empty(); range = changed.next(range.end)) {
    encoder.add(range.begin, range.size());
    if (encoder.bytes() + patterns::kRunBytesMax > patterns::kRunsBytesMax) return std::nullopt;
  }
  const std::uint64_t payload = encoder.payload(), chunks = chunks_of(image.size(), shape.chunk_bytes);
  PIF_ASSERT(payload > 0, first_chunk, image.size());
  const std::string runs = encoder.finish();
  const StoredChanges stored{static_cast<std::uint32_t>(image.size()), static_cast<std::uint32_t>(runs.size())};
  const std::uint64_t size = sizeof stored + chunks * sizeof(std::uint64_t) + runs.size() + payload;
  if (size > image.size() / 4 * 3) return std::nullopt;
  std::vector<std::byte> out;
  out.reserve(size);
  append(out, &stored, sizeof stored);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const auto chunk = image.subspan(i * shape.chunk_bytes);
    const std::uint64_t sum =
        shape.data_sum(first_chunk + i, chunk.first(std::min<std::size_t>(chunk.size(), shape.chunk_bytes)));
    append(out, &sum, sizeof sum);
  }
  append(out, runs.data(), runs.size());
  for (Range range = changed.next(0); !range.empty(); range = changed.next(range.end))
    append(out, image.data() + range.begin, range.size());
  PIF_ASSERT(out.size() == size, out.size(), size);
  return out;
}

std::uint64_t Changes::sum(std::uint64_t chunk) const {
  std::uint64_t sum = 0;
  std::memcpy(&sum, sums.subspan(chunk * sizeof sum, sizeof sum).data(), sizeof sum);
  return sum;
}

void Changes::apply(std::span<std::byte> image) const {
  patterns::RunDecoder left = *runs;
  std::span<const std::byte> from = data;
  while (auto run = left.next()) {
    for (; run->count > 0; --run->count, run->offset += run->stride) {
      const std::uint64_t there = run->offset < image.size() ? image.size() - run->offset : 0;
      if (there > 0) std::memcpy(image.data() + run->offset, from.data(), std::min(there, run->length));
      from = from.subspan(run->length);
    }
  }
}

Result<Changes> decode_changes(std::span<const std::byte> data, std::uint32_t chunk_bytes) {
  const Error corrupt{Code::kCorrupt, "changed bytes of chunks that do not fit the entry they are in", {}};
  StoredChanges stored{};
  if (data.size() < sizeof stored || chunk_bytes == 0) return fail(corrupt);
  std::memcpy(&stored, data.data(), sizeof stored);
  data = data.subspan(sizeof stored);
  const std::uint64_t sum_bytes = chunks_of(stored.bytes, chunk_bytes) * sizeof(std::uint64_t);
  if (stored.bytes == 0 || data.size() < sum_bytes + stored.run_bytes) return fail(corrupt);
  Changes out{stored.bytes, data.first(sum_bytes), {}, data.subspan(sum_bytes + stored.run_bytes)};
  auto runs = patterns::RunDecoder::make(data.subspan(sum_bytes, stored.run_bytes), {stored.bytes});
  if (!runs || runs->payload() != out.data.size()) return fail(corrupt);
  out.runs = *runs;
  return out;
}

}  // namespace pif::lfs
