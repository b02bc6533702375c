#include <algorithm>
#include <bitset>
#include <cstring>

#include <fmt/format.h>

#include "copy_piece.h"
#include "pif/base/assert.h"
#include "pif/component/extents.h"
#include "stream_reader.h"

namespace pif::component {
namespace {

// What lies between two pieces is read along if it is no longer than this. Measured in the page cache: a call costs as
// much as reading two more chunks without hashing them.
constexpr std::uint64_t kBetweenChunks = 2;
constexpr std::uint64_t kRawChunkBytes = 4096;  // of a file without sums
constexpr std::size_t kWindowChunksMax = 256;

}  // namespace

// Bytes [begin, end) of .dat, from a chunk's begin on. Each chunk is checked when a piece of it is asked for first.
struct ExtentReader::Window {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t chunk_bytes = kRawChunkBytes;
  std::optional<StoredStream> stream;  // nothing: unchecked
  std::optional<SumReader> sums;
  std::bitset<kWindowChunksMax> checked;
  std::uint64_t known_begin = 0, known_end = 0;  // bytes of chunks that were checked last
  std::unique_ptr<std::byte[]> bytes;
  std::size_t room = 0;

  std::size_t bytes_max() const {
    return static_cast<std::size_t>(std::max<std::uint64_t>(
        chunk_bytes, std::min<std::uint64_t>(kSliceBytes / chunk_bytes, kWindowChunksMax) * chunk_bytes));
  }
  bool has(const Extent& extent) const { return extent.offset >= begin && extent.offset + extent.size <= end; }
  [[nodiscard]] Status check(const Extent& extent) {
    if (extent.offset >= known_begin && extent.offset + extent.size <= known_end) return {};  // as of most short ones
    const std::uint64_t first = extent.offset / chunk_bytes, last = (extent.offset + extent.size - 1) / chunk_bytes;
    for (std::uint64_t chunk = first; chunk <= last; ++chunk) {
      const std::size_t number = chunk - begin / chunk_bytes;
      if (checked.test(number)) continue;
      const std::uint64_t from = chunk * chunk_bytes;
      const std::uint64_t size = std::min(chunk_bytes, end - from);
      PIF_TRY(sums->verify(chunk, std::span(bytes.get() + (from - begin), size)));
      checked.set(number);
    }
    known_begin = first * chunk_bytes;
    known_end = (last + 1) * chunk_bytes;
    return {};
  }
};

ExtentReader::ExtentReader(const Reader& reader)
    : reader_(&reader), data_(reader.files_->data.get()), window_(std::make_unique<Window>()) {
  if (!validate(reader.shape_, reader.tail_)) return;  // read() says so
  window_->stream = StoredStream::data_of(reader.shape_, reader.tail_, *reader.files_, reader.only_cached_);
  window_->chunk_bytes = reader.shape_.chunk_bytes;
}

ExtentReader::ExtentReader(File& data) : data_(&data), window_(std::make_unique<Window>()) {}
ExtentReader::~ExtentReader() = default;

std::uint64_t ExtentReader::chunk_bytes() const { return window_->chunk_bytes; }

Status ExtentReader::read(std::span<const Extent> extents) {
  if (reader_ != nullptr) PIF_TRY(validate(reader_->shape_, reader_->tail_));
  const std::uint64_t end = reader_ != nullptr ? reader_->tail_.bytes : kLengthMax;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    PIF_ASSERT(i == 0 || extent.offset >= extents[i - 1].offset, i, extent.offset);
    if (extent.size == 0) continue;
    if (extent.offset > end || extent.size > end - extent.offset)
      return fail(Code::kEndOfFile, fmt::format("bytes {} to {} are not all there: the component has {}", extent.offset,
                                                extent.offset + extent.size - 1, end));
    if (!window_->has(extent)) {
      if (extent.size >= kSliceBytes / 2) {
        PIF_TRY(read_long(extent));
        continue;
      }
      PIF_TRY(load(extents.subspan(i)));
    }
    if (window_->sums) PIF_TRY(window_->check(extent));
    copy_piece(extent.at, window_->bytes.get() + (extent.offset - window_->begin), extent.size);
  }
  return {};
}

// The first of them, and those behind it that lie close.
Status ExtentReader::load(std::span<const Extent> extents) {
  Window& window = *window_;
  const std::uint64_t chunk_bytes = window.chunk_bytes;
  const auto chunk_end = [chunk_bytes](const Extent& extent) {
    return (extent.offset + extent.size - 1) / chunk_bytes + 1;
  };
  const std::uint64_t first = extents[0].offset / chunk_bytes;
  std::uint64_t stop = chunk_end(extents[0]);
  const std::uint64_t stop_max = std::max(stop, first + window.bytes_max() / chunk_bytes);
  for (const Extent& next : extents.subspan(1)) {
    // Most end in a chunk that is read anyway: they need no division.
    if (next.size == 0 || next.offset + next.size <= stop * chunk_bytes) continue;
    if (next.offset / chunk_bytes > stop + kBetweenChunks || chunk_end(next) > stop_max) break;
    stop = chunk_end(next);
  }
  window.begin = window.end = 0;  // nothing, should it fail
  const std::uint64_t begin = first * chunk_bytes;
  const std::uint64_t end = window.stream ? std::min(stop * chunk_bytes, window.stream->length) : stop * chunk_bytes;
  PIF_ASSERT(stop - first <= kWindowChunksMax, first, stop);
  if (window.room < end - begin) {
    window.room = std::max<std::size_t>(end - begin, window.stream ? 0 : window.bytes_max());
    window.bytes = std::make_unique_for_overwrite<std::byte[]>(window.room);
  }
  const std::span<std::byte> into(window.bytes.get(), end - begin);
  if (window.stream) {
    PIF_TRY_VALUE(const std::size_t n, window.stream->read(*data_, begin, into));
    if (n != into.size())
      return fail(Code::kCorrupt, fmt::format("{}: the file ends at byte {}, before its {} bytes",
                                              window.stream->place(first), begin + n, window.stream->length));
    window.sums.emplace(*window.stream, stop);
    window.checked.reset();
    window.known_begin = window.known_end = 0;
  } else {
    PIF_TRY(read_raw(begin, into));
  }
  scanned_ += into.size();
  window.begin = begin;
  window.end = end;
  return {};
}

Status ExtentReader::read_long(const Extent& extent) {
  scanned_ += extent.size;
  if (reader_ != nullptr) return reader_->read_bytes(extent.offset, {extent.at, extent.size});
  return read_raw(extent.offset, {extent.at, extent.size});
}

Status ExtentReader::read_raw(std::uint64_t offset, std::span<std::byte> out) {
  PIF_TRY_VALUE(const std::size_t n, data_->read(offset, out));
  if (n < out.size()) std::memset(out.data() + n, 0, out.size() - n);
  return {};
}

}  // namespace pif::component
