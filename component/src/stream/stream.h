// One checked stream of a component: a file of bytes in chunks, and a file with a sum per full chunk. .dat with .sum is
// one, .idx with .isum the other. docs/FORMAT.md "Component".
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pif/base/checksum.h"
#include "pif/component/component.h"

namespace pif::component {

static_assert(std::endian::native == std::endian::little, "sums and index are stored as this machine has them");

inline constexpr std::size_t kEndBytes = sizeof(std::uint64_t);  // of a row in .idx
inline constexpr std::size_t kSliceBytes = 256u << 10;  // bytes moved and hashed in one go: they stay in the cache
inline constexpr std::size_t kBounceBytes = 64u << 10;  // of a buffer on the stack
inline constexpr std::size_t kPieces = 64;              // of one vectored call
inline constexpr std::uint32_t kLongRowBytes = 4096;    // from here on a row is moved by itself, not through a buffer
inline constexpr std::uint64_t kLengthMax = INT64_MAX;  // bytes of a file

// In memory all sums are without stamps. load_sums() and write_sums() are the only ones that know how a file has them.
struct Stream {
  FileId file;
  std::uint32_t id = kDataStream;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t row_bytes = 0;  // 0: variable
  File* data = nullptr;
  File* sums = nullptr;
  bool has_stamps = false;  // {sum, stamp} is stored for each chunk

  static Stream data_of(const Shape& shape, Files& files) {
    const std::uint32_t row = shape.format.is_fixed() ? shape.format.record_length : 0;
    return {shape.file, kDataStream, shape.chunk_bytes, row, files.data.get(), files.sums.get(), shape.form > 0};
  }
  static Stream index_of(const Shape& shape, Files& files) {
    return {shape.file, kIndexStream, kIndexChunkBytes, kEndBytes, files.index.get(), files.index_sums.get(), false};
  }

  std::uint64_t sum(std::uint64_t chunk, std::span<const std::byte> bytes) const {
    return chunk_sum(file, id, chunk, bytes);
  }
  // Numbers of 64 bits that are stored for each full chunk; bytes of them.
  std::size_t sum_words() const { return has_stamps ? 2 : 1; }
  std::size_t sum_bytes() const { return sum_words() * sizeof(std::uint64_t); }
  // A sum from memory as it is stored with stamp 0, and back.
  std::uint64_t with_stamp_0(std::uint64_t sum) const { return has_stamps ? sum ^ stamp_mix(0) : sum; }
  // The sum of a chunk whose place in the file of sums was never written.
  std::uint64_t unwritten_sum() const { return with_stamp_0(0); }
  // words: what is stored for `count` chunks. Afterwards the first `count` are their sums.
  void load_sums(std::span<std::uint64_t> words, std::size_t count) const;
  // Stored with stamp 0, from `chunk` on.
  [[nodiscard]] Status write_sums(std::uint64_t chunk, std::span<const std::uint64_t> of_chunks) const;
  // Bytes of a chunk when the stream is `length` bytes long.
  std::size_t size_of(std::uint64_t chunk, std::uint64_t length) const {
    const std::uint64_t begin = chunk * chunk_bytes;
    return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, length - std::min(length, begin)));
  }
  // Chunks that one slice holds, at least one.
  std::size_t slice_chunks(std::size_t slice_bytes) const {
    return std::max<std::size_t>(1, slice_bytes / chunk_bytes);
  }
  // "file 12, chunk 17 (rows 680 to 719)"
  std::string place(std::uint64_t chunk, std::uint64_t length) const;
};

// A stream that has been written, with its length and the sum of a partial last chunk.
struct StoredStream : Stream {
  std::uint64_t length = 0;
  std::uint64_t tail_sum = 0;  // without a stamp
  bool only_cached = false;    // reads do not wait for a disk

  // tail: as the catalogue has it.
  StoredStream(const Stream& stream, std::uint64_t bytes, std::uint64_t tail, bool cached = false)
      : Stream(stream), length(bytes), tail_sum(with_stamp_0(tail)), only_cached(cached) {}

  static StoredStream data_of(const Shape& shape, const Tail& tail, Files& files, bool cached = false) {
    return {Stream::data_of(shape, files), tail.bytes, tail.data_sum, cached};
  }
  static StoredStream index_of(const Shape& shape, const Tail& tail, Files& files, bool cached = false) {
    return {Stream::index_of(shape, files), tail.rows * sizeof(std::uint64_t), tail.index_sum, cached};
  }

  // From `data` or `sums`. kBusy: it would have to wait for the disk, and may not.
  [[nodiscard]] Result<std::size_t> read(File& from, std::uint64_t offset, std::span<std::byte> out) const;

  std::uint64_t full_chunks() const { return length / chunk_bytes; }
  std::uint64_t chunks() const { return length / chunk_bytes + (length % chunk_bytes != 0 ? 1 : 0); }
  std::string place(std::uint64_t chunk) const { return Stream::place(chunk, length); }
};

// kInvalid if the shape's chunks cannot be: an LFS's answer is not taken on trust.
[[nodiscard]] Status validate(const Shape& shape);
// The same, and kCorrupt for lengths that no file can have: sums over them would wrap.
[[nodiscard]] Status validate(const Shape& shape, const Tail& tail);

}  // namespace pif::component
