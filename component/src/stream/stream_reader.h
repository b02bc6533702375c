// Checked reading of one stream. Nothing is returned that does not match its sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stream/stream.h"

namespace pif::component {

// The sums of a run of chunks, read as they are needed, in rising order, many at a time.
class SumReader {
 public:
  // `end`: one past the last chunk that will be asked for.
  SumReader(const StoredStream& stream, std::uint64_t end) : stream_(stream), end_(end) {}

  [[nodiscard]] Result<std::uint64_t> get(std::uint64_t chunk) {
    if (chunk >= loaded_end_ || chunk < loaded_begin_) PIF_TRY(load(chunk));
    return sums_[chunk - loaded_begin_];
  }
  // Whether `bytes`, the whole of a chunk, are what was written: kCorrupt names the place.
  [[nodiscard]] Status verify(std::uint64_t chunk, std::span<const std::byte> bytes) {
    if (chunk >= loaded_end_ || chunk < loaded_begin_) PIF_TRY(load(chunk));
    if (stream_.sum(chunk, bytes) != sums_[chunk - loaded_begin_]) return corrupt(chunk);
    return {};
  }

 private:
  Status load(std::uint64_t chunk);
  Status corrupt(std::uint64_t chunk) const;

  const StoredStream& stream_;
  const std::uint64_t end_;
  std::uint64_t loaded_begin_ = 0;
  std::uint64_t loaded_end_ = 0;
  std::array<std::uint64_t, 1024> sums_;  // of chunks [loaded_begin_, loaded_end_)
};

// All of the following: the range lies inside the stream, which the caller has checked.

// Bytes [offset, offset + out.size()).
[[nodiscard]] Status read_packed(const StoredStream& stream, std::uint64_t offset, std::span<std::byte> out);
// Whether the bytes, mapped with all others, are what was written; whole chunks are looked at.
[[nodiscard]] Status check_mapped(const StoredStream& stream, Range bytes, std::span<const std::byte> mapped);
// Rows that are each a chunk, straight to their places.
[[nodiscard]] Status read_long_rows(const StoredStream& stream, Row first, std::uint64_t count, Rows out);
// Rows of which several are in a chunk, through a buffer.
[[nodiscard]] Status read_short_rows(const StoredStream& stream, Row first, std::uint64_t count, Rows out);
// Reads everything; adds a line per chunk that does not hold until there are `lines_max`.
void check_stream(const StoredStream& stream, std::size_t lines_max, std::vector<std::string>& lines);

}  // namespace pif::component
