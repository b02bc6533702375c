// Components that are written in pieces, and get their sums at the end.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/extents.h"
#include "stream/stream.h"

namespace pif::component {
namespace {

// Pieces that are together in so short a stretch are written with what lies between them: on average one in so many
// bytes. Measured in the page cache: a call for each of them costs more than moving so many bytes twice.
constexpr std::uint64_t kBytesPerPieceMax = 1024;
constexpr std::size_t kTogetherMin = 8;
constexpr std::size_t kSumsAtOnce = 1024;

// Measured with 2 and 4 members: nearer, pages are written twice; farther, more is left to the sync.
constexpr std::uint64_t kWritebackBehind = 4u << 20;
constexpr std::uint64_t kWritebackStep = 1u << 20;

std::uint64_t end_of(const ConstExtent& extent) { return extent.offset + extent.size; }

// How many of the first ones are written together: 0, or at least kTogetherMin.
std::size_t count_together(std::span<const ConstExtent> extents) {
  PIF_ASSERT(!extents.empty());
  const std::uint64_t begin = extents[0].offset;
  std::size_t count = 1;
  while (count < extents.size()) {
    const ConstExtent& next = extents[count];
    if (end_of(next) - begin > kSliceBytes || next.size >= kLongRowBytes) break;
    if (next.offset - end_of(extents[count - 1]) > kBytesPerPieceMax) break;
    ++count;
  }
  return count < kTogetherMin || extents[0].size >= kLongRowBytes ? 0 : count;
}

Status write_together(File& data, std::span<const ConstExtent> extents, std::span<std::byte> buffer) {
  const std::uint64_t begin = extents.front().offset;
  PIF_ASSERT(end_of(extents.back()) - begin <= buffer.size(), begin, extents.size(), buffer.size());
  const std::span<std::byte> window = buffer.first(end_of(extents.back()) - begin);
  PIF_TRY_VALUE(const std::size_t n, data.read(begin, window));
  if (n < window.size()) std::memset(window.data() + n, 0, window.size() - n);
  for (const ConstExtent& extent : extents)
    std::memcpy(window.data() + (extent.offset - begin), extent.at, extent.size);
  return data.write(begin, window);
}

// Those that follow one another in the file: one call.
std::size_t count_adjacent(std::span<const ConstExtent> extents, std::array<ConstPiece, kPieces>& pieces) {
  std::size_t count = 0;
  while (count < extents.size() && count < kPieces) {
    if (count > 0 && extents[count].offset != end_of(extents[count - 1])) break;
    pieces[count] = {extents[count].at, extents[count].size};
    ++count;
  }
  return count;
}

// The sums of a stream, chunk by chunk.
class SumWriter {
 public:
  explicit SumWriter(const Stream& stream) : stream_(stream), zeros_(stream.chunk_bytes) {
    zero_hash_ = hash_bytes(zeros_);
  }
  // Of the next chunks, up to `end`: nobody wrote them.
  [[nodiscard]] Status add_zeros(std::uint64_t end) {
    while (next_ < end) PIF_TRY(add(zero_hash_ ^ chunk_mix(stream_.file, stream_.id, next_)));
    return {};
  }
  [[nodiscard]] Status add_bytes(std::span<const std::byte> bytes) {
    PIF_ASSERT(bytes.size() % stream_.chunk_bytes == 0, bytes.size(), stream_.chunk_bytes);
    for (std::size_t at = 0; at < bytes.size(); at += stream_.chunk_bytes)
      PIF_TRY(add(stream_.sum(next_, bytes.subspan(at, stream_.chunk_bytes))));
    return {};
  }
  [[nodiscard]] Status flush() {
    PIF_ASSERT(count_ <= next_, count_, next_);
    const std::span<const std::uint64_t> some(sums_.data(), count_);
    PIF_TRY(stream_.write_sums(next_ - count_, some));
    count_ = 0;
    return {};
  }
  std::uint64_t next() const { return next_; }

 private:
  [[nodiscard]] Status add(std::uint64_t sum) {
    if (count_ == sums_.size()) PIF_TRY(flush());
    sums_[count_++] = sum;
    ++next_;
    return {};
  }

  const Stream stream_;
  const std::vector<std::byte> zeros_;
  std::uint64_t zero_hash_ = 0;
  std::uint64_t next_ = 0;  // chunk
  std::size_t count_ = 0;
  std::array<std::uint64_t, kSumsAtOnce> sums_{};
};

Status read_all(const Stream& stream, std::uint64_t offset, std::span<std::byte> out) {
  PIF_TRY_VALUE(const std::size_t n, stream.data->read(offset, out));
  if (n == out.size()) return {};
  return fail(Code::kIo, fmt::format("file {}: {} bytes at byte {} were to be read, {} came", stream.file.value,
                                     out.size(), offset, n));
}

}  // namespace

Status write_extents(File& data, std::span<const ConstExtent> extents, bool alone) {
  std::unique_ptr<std::byte[]> buffer;
  std::array<ConstPiece, kPieces> pieces;
  while (!extents.empty()) {
    std::size_t count = alone ? count_together(extents) : 0;
    if (count > 0) {
      if (!buffer) buffer = std::make_unique_for_overwrite<std::byte[]>(kSliceBytes);
      PIF_TRY(write_together(data, extents.first(count), {buffer.get(), kSliceBytes}));
    } else {
      count = count_adjacent(extents, pieces);
      PIF_TRY(data.write(extents[0].offset, std::span(pieces.data(), count)));
    }
    PIF_ASSERT(count > 0 && count <= extents.size(), count, extents.size());
    extents = extents.subspan(count);
  }
  return {};
}

std::optional<Range> WritebackBehind::due(const Range& written) {
  PIF_ASSERT(written.begin <= written.end, written.begin, written.end);
  std::uint64_t next = kNothing;
  if (next_.compare_exchange_strong(next, written.begin)) next = written.begin;
  if (written.end < next || written.end - next < kWritebackBehind + kWritebackStep) return std::nullopt;
  const std::uint64_t stop = written.end - kWritebackBehind;
  if (!next_.compare_exchange_strong(next, stop)) return std::nullopt;  // another thread asks
  return Range{next, stop};
}

Result<Tail> sum_scattered(const Shape& shape, Files& files, std::uint64_t rows, std::uint64_t bytes) {
  Tail tail{rows, bytes, 0, 0};
  PIF_TRY(check_tail(shape, tail));
  PIF_ASSERT(shape.format.is_fixed(), shape.file.value);
  const Stream stream = Stream::data_of(shape, files);
  const std::uint64_t chunk_bytes = stream.chunk_bytes;
  const std::uint64_t full = bytes / chunk_bytes;
  PIF_TRY(files.data->resize(bytes));
  PIF_TRY(files.sums->resize(full * stream.sum_bytes()));
  const std::size_t slice = stream.slice_chunks(4 * kSliceBytes) * chunk_bytes;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(std::min<std::uint64_t>(slice, bytes));
  SumWriter sums(stream);
  while (sums.next() < full) {
    PIF_TRY_VALUE(const std::uint64_t data, files.data->next_data(sums.next() * chunk_bytes));
    PIF_TRY(sums.add_zeros(std::min(full, data / chunk_bytes)));
    if (sums.next() == full) break;
    const std::uint64_t begin = sums.next() * chunk_bytes;
    const std::span<std::byte> some(buffer.get(), std::min<std::uint64_t>(slice, full * chunk_bytes - begin));
    PIF_TRY(read_all(stream, begin, some));
    PIF_TRY(sums.add_bytes(some));
  }
  PIF_TRY(sums.flush());
  PIF_ASSERT(sums.next() == full, sums.next(), full);
  if (bytes % chunk_bytes == 0) return tail;
  const std::span<std::byte> last(buffer.get(), bytes % chunk_bytes);
  PIF_TRY(read_all(stream, full * chunk_bytes, last));
  tail.data_sum = stream.with_stamp_0(stream.sum(full, last));
  return tail;
}

}  // namespace pif::component
