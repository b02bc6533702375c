#include <algorithm>
#include <bitset>
#include <cstring>

#include <fmt/format.h>

#include "pieces/copy_piece.h"
#include "pif/base/assert.h"
#include "pif/component/extents.h"
#include "stream/stream_reader.h"

namespace pif::component {
namespace {

// What lies between two pieces is read along if it is no longer than this. Measured in the page cache: a call costs as
// much as reading two more chunks without hashing them.
constexpr std::uint64_t kBetweenChunks = 2;
constexpr std::uint64_t kRawChunkBytes = 4096;  // of a file without sums
constexpr std::size_t kWindowChunksMax = 256;
// Measured in the page cache: a MiB at a time is read, hashed and copied a tenth sooner than a quarter of it.
constexpr std::uint64_t kWindowBytes = 1u << 20;

bool ends_before(const ExtentRun& run, std::uint64_t end) {
  std::uint64_t last = 0;
  return !__builtin_mul_overflow(run.count - 1, run.stride, &last) && run.offset <= end && last <= end - run.offset &&
         run.size <= end - run.offset - last;
}

Status past_end(const ExtentRun& run, std::uint64_t end) {
  return fail(Code::kEndOfFile, fmt::format("{} times {} bytes from byte {} on are not all there: the component has {}",
                                            run.count, run.size, run.offset, end));
}

// How many extents of the run from `from` on end there or before.
std::uint64_t count_before(const ExtentRun& run, std::uint64_t from, std::uint64_t end) {
  const std::uint64_t first_end = run.offset + from * run.stride + run.size, left = run.count - from;
  if (first_end > end) return 0;
  if (left == 1 || run.stride > end - first_end) return 1;
  return run.stride == 0 ? left : std::min(left, (end - first_end) / run.stride + 1);
}

// How far a window goes: up to chunk `stop`, and no further than stop_max.
struct Reach {
  std::uint64_t chunk_bytes, stop, stop_max;

  // Takes extents of the run from `from` on; whether there was room for all.
  bool take(const ExtentRun& run, std::uint64_t from) {
    while (from < run.count) {
      // Most end in a chunk that is read anyway: they need no division.
      if (const std::uint64_t inside = count_before(run, from, stop * chunk_bytes); inside > 0) {
        from += inside;
        continue;
      }
      const std::uint64_t offset = run.offset + from * run.stride;
      const std::uint64_t end = (offset + run.size - 1) / chunk_bytes + 1;
      if (offset / chunk_bytes > stop + kBetweenChunks || end > stop_max) return false;
      stop = end;
      ++from;
    }
    return true;
  }
};

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
        chunk_bytes, std::min<std::uint64_t>(kWindowBytes / chunk_bytes, kWindowChunksMax) * chunk_bytes));
  }
  bool has(const Extent& extent) const { return extent.offset >= begin && extent.offset + extent.size <= end; }
  [[nodiscard]] Status check(const Extent& extent) {
    if (extent.offset >= known_begin && extent.offset + extent.size <= known_end) return {};  // as of most short ones
    PIF_ASSERT(sums.has_value() && has(extent), extent.offset, extent.size, begin, end);
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

Status ExtentReader::read(std::span<const ExtentRun> runs) {
  if (reader_ != nullptr) PIF_TRY(validate(reader_->shape_, reader_->tail_));
  return read(runs, reader_ != nullptr ? reader_->tail_.bytes : kLengthMax);
}

// end: of the component.
Status ExtentReader::read(std::span<const ExtentRun> runs, std::uint64_t end) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ExtentRun& run = runs[i];
    PIF_ASSERT(run.count > 0, i);
    if (run.size == 0) continue;
    if (!ends_before(run, end)) return past_end(run, end);
    PIF_ASSERT(i == 0 || run.offset >= runs[i - 1].offset + (runs[i - 1].count - 1) * runs[i - 1].stride, i);
    for (std::uint64_t done = 0; done < run.count;) {
      const Extent next = run[done];
      if (!window_->has(next)) {
        if (next.size >= kSliceBytes / 2) {
          PIF_TRY(read_long(next));
          ++done;
          continue;
        }
        PIF_TRY(load(runs.subspan(i), done));
      }
      PIF_TRY_VALUE(const std::uint64_t copied, copy(run, done));
      done += copied;
    }
  }
  return {};
}

// Extents of the run from that one on, which is in the window: those that end in the same chunk, or, unchecked, in the
// window. How many they are.
Result<std::uint64_t> ExtentReader::copy(const ExtentRun& run, std::uint64_t from) {
  const Extent first = run[from];
  if (window_->sums) PIF_TRY(window_->check(first));
  const std::uint64_t end = window_->sums ? std::min(window_->known_end, window_->end) : window_->end;
  const std::uint64_t count = count_before(run, from, end);
  PIF_ASSERT(count > 0, first.offset, first.size, end);
  const CopyRun places{first.at, run.at_stride, window_->bytes.get() + (first.offset - window_->begin),
                       static_cast<std::ptrdiff_t>(run.stride)};
  copy_pieces(places, run.size, count);
  return count;
}

// The chunks of the first run's extents from `begun` on, and of those behind them that lie close.
Status ExtentReader::load(std::span<const ExtentRun> runs, std::uint64_t begun) {
  const std::uint64_t chunk_bytes = window_->chunk_bytes;
  const Extent first = runs[0][begun];
  Reach reach{chunk_bytes, (first.offset + first.size - 1) / chunk_bytes + 1, 0};
  const std::uint64_t first_chunk = first.offset / chunk_bytes;
  reach.stop_max = std::max(reach.stop, first_chunk + window_->bytes_max() / chunk_bytes);
  bool goes_on = reach.take(runs[0], begun + 1);
  for (const ExtentRun& run : runs.subspan(1)) {
    if (!goes_on) break;
    if (run.size > 0) goes_on = reach.take(run, 0);
  }
  return fill_window(first_chunk, reach.stop);
}

// With chunks [first, stop).
Status ExtentReader::fill_window(std::uint64_t first, std::uint64_t stop) {
  Window& window = *window_;
  window.begin = window.end = 0;  // nothing, should it fail
  const std::uint64_t begin = first * window.chunk_bytes;
  std::uint64_t end = stop * window.chunk_bytes;
  if (window.stream) end = std::min(end, window.stream->length);
  PIF_ASSERT(stop - first <= kWindowChunksMax, first, stop);
  if (window.room < end - begin) {
    window.room = std::max<std::size_t>(end - begin, window.stream ? 0 : window.bytes_max());
    window.bytes = std::make_unique_for_overwrite<std::byte[]>(window.room);
  }
  PIF_ASSERT(begin <= end && end - begin <= window.room, begin, end, window.room);
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
  PIF_ASSERT(n <= out.size(), offset, n, out.size());
  if (n < out.size()) std::memset(out.data() + n, 0, out.size() - n);
  return {};
}

}  // namespace pif::component
