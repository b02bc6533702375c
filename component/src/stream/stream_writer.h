// Checked writing of one stream, in any order. Whole chunks go from the caller's memory to the file; parts of chunks
// gather in a window of memory, so that a chunk is summed and written once however small the pieces it comes in.
//
// Invariants, between calls:
//  1. Every chunk in the window is whole, except one that ends at length().
//  2. If length() is inside a chunk, that chunk is in the window, or its sum is tail_sum_ and its bytes in the file.
//  3. A whole chunk's sum is in the file of sums, or pending, or the chunk is in the window after dirty_; or it was
//  never
//     written and lies in [gap_begin_, gap_end_), where zeros in place of a stored sum say so.
// Thread-safety: write() may run in several threads on disjoint stretches of whole chunks: their bytes are hashed and
// written outside the mutex, which guards every member and is taken a few times per call. All else: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "stream/stream.h"

namespace pif::component {

// Bytes in memory, row by row: row i starts at base + i * stride. Packed if stride is row_bytes.
struct Source {
  const std::byte* base = nullptr;
  std::size_t row_bytes = 0;
  std::size_t stride = 0;

  bool packed() const { return row_bytes == stride; }
  // Bytes [from, from + size) of the rows, counted without what lies between rows.
  void gather(std::uint64_t from, std::size_t size, std::byte* to) const;
};

// Which bytes the kernel should be asked to write back before anybody syncs: where long stretches were written, several
// of them in turn perhaps.
class Writeback {
 public:
  // Bytes [range.begin, range.end) were written: what is to be written back now, if it is worth it.
  std::optional<Range> add(Range range);

 private:
  std::vector<Range> stretches_;  // written, not asked for yet; the latest last
};

class StreamWriter {
 public:
  // tail_sum: as the catalogue has it.
  StreamWriter(const Stream& stream, std::uint64_t length, std::uint64_t tail_sum)
      : stream_(stream), length_(length), tail_sum_(stream.with_stamp_0(tail_sum)) {}

  // Bytes [0, size) of `in` to `offset`. Bytes between length() and `offset` read as zeros.
  [[nodiscard]] Status write(std::uint64_t offset, const Source& in, std::uint64_t size);
  // length <= length().
  [[nodiscard]] Status truncate(std::uint64_t length);
  // Bytes [offset, offset + out.size()), which must lie inside one chunk.
  [[nodiscard]] Status peek(std::uint64_t offset, std::span<std::byte> out);
  // Everything is in the files. The sum of the partial last chunk as the catalogue has it, 0 without one.
  [[nodiscard]] Result<std::uint64_t> finish();

  std::uint64_t length() const {
    const std::lock_guard guard(mutex_);
    return length_;
  }

 private:
  std::uint64_t chunk_bytes() const { return stream_.chunk_bytes; }
  std::size_t window_max() const { return stream_.slice_chunks(kSliceBytes) * stream_.chunk_bytes; }
  bool in_window(std::uint64_t chunk) const {
    return !window_.empty() && chunk >= window_chunk_ && chunk <= window_chunk_ + (window_.size() - 1) / chunk_bytes();
  }

  // These need the mutex.
  Status fill_up_to(std::uint64_t offset);
  Status patch(std::uint64_t offset, const Source& in, std::uint64_t from, std::uint64_t size);
  Status hold(std::uint64_t chunk, bool replaced);
  Status load(std::uint64_t chunk);
  Status flush();
  void drop_window();
  Result<std::optional<std::uint64_t>> known_sum(std::uint64_t chunk);
  Status push_sums(std::uint64_t chunk, std::span<const std::uint64_t> sums);
  Status flush_sums();
  Status fill_gaps();
  Status begin_direct(std::uint64_t begin, std::uint64_t end);
  Status end_direct(std::uint64_t begin, std::uint64_t end, Status status);

  // These must not hold it. [begin, begin + size): whole chunks, at byte `from` of `in`.
  Status write_whole(std::uint64_t begin, std::uint64_t end, const Source& in, std::uint64_t from);
  Status write_packed(std::uint64_t begin, std::uint64_t end, const std::byte* bytes);
  Status write_long_rows(std::uint64_t begin, std::uint64_t end, const Source& in, std::uint64_t first);
  Status write_gathered(std::uint64_t begin, std::uint64_t end, const Source& in, std::uint64_t from);
  Status take_sums(std::uint64_t chunk, std::span<const std::uint64_t> sums);
  void start_writeback(Range written);

  const Stream stream_;
  mutable std::mutex mutex_;  // guards everything below
  std::uint64_t length_;
  std::uint64_t tail_sum_;  // without a stamp, as all sums here

  std::vector<std::byte> window_;  // bytes from chunk window_chunk_ on; at most window_max()
  std::uint64_t window_chunk_ = 0;
  std::size_t dirty_ = 0;  // from this place in the window on, bytes and sums are only here

  std::vector<std::uint64_t> pending_;  // sums not yet in the file, from chunk pending_chunk_ on
  std::uint64_t pending_chunk_ = 0;

  std::uint64_t gap_begin_ = 0;  // chunks among which some may never have been written
  std::uint64_t gap_end_ = 0;

  std::optional<Error> failure_;  // of the first write of whole chunks that failed, in [failed_begin_, failed_end_)
  std::uint64_t failed_begin_ = 0;
  std::uint64_t failed_end_ = 0;

  Writeback writeback_;
};

}  // namespace pif::component
