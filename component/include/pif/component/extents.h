// Many pieces of one component's .dat at once, wherever they lie: read with what lies between them where they are close
// together, so that each chunk is read and checked once however many pieces it has. And the component that several
// write in pieces, which has no sums before it is sealed (docs/FORMAT.md "Scattered components").
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pif/component/component.h"

namespace pif::component {

// Bytes [offset, offset + size) of .dat, and their place in memory.
struct Extent {
  std::uint64_t offset = 0;
  std::size_t size = 0;
  std::byte* at = nullptr;
};
struct ConstExtent {
  std::uint64_t offset = 0;
  std::size_t size = 0;
  const std::byte* at = nullptr;
};
// `count` extents of one size at one distance. The distances of one extent do not matter.
struct ExtentRun {
  std::uint64_t offset = 0;  // of the first
  std::size_t size = 0;
  std::byte* at = nullptr;
  std::uint64_t count = 1;
  std::uint64_t stride = 0;      // from one to the next, in .dat
  std::ptrdiff_t at_stride = 0;  // and in memory

  // Extent i, which is below count.
  Extent operator[](std::uint64_t i) const {
    return {offset + i * stride, size, at + static_cast<std::ptrdiff_t>(i) * at_stride};
  }
};

// The chunks that the pieces of one OverwritePieces are in have so many bytes at most, or it is one chunk: the LFS logs
// all of each.
inline constexpr std::uint64_t kTouchedBytesMax = 4u << 20;

// Keeps the window that it read last, so that pieces of one chunk may come in several calls.
// Thread-safety: none.
class ExtentReader {
 public:
  // Checked: of a published component. `reader` outlives it.
  explicit ExtentReader(const Reader& reader);
  // Unchecked: of one that is being created. Bytes that were not written read as zeros, also behind the end of the
  // file, which outlives the reader.
  explicit ExtentReader(File& data);
  ~ExtentReader();
  ExtentReader(const ExtentReader&) = delete;
  ExtentReader& operator=(const ExtentReader&) = delete;

  // Fills all of them. They rise by offset, all of a run before the next run. Checked: kEndOfFile past Reader::tail(),
  // kCorrupt. kBusy: the reader is one that does not wait for a disk, and would have to. kIo. After an error nothing is
  // known of their memory.
  [[nodiscard]] Status read(std::span<const ExtentRun> runs);
  // Bytes that were read from files so far, with what lay between pieces.
  std::uint64_t scanned() const { return scanned_; }
  // Bytes that are read for the shortest piece.
  std::uint64_t chunk_bytes() const;

 private:
  struct Window;
  [[nodiscard]] Status read(std::span<const ExtentRun> runs, std::uint64_t end);
  [[nodiscard]] Status load(std::span<const ExtentRun> runs, std::uint64_t begun);
  [[nodiscard]] Status fill_window(std::uint64_t first, std::uint64_t stop);
  [[nodiscard]] Result<std::uint64_t> copy(const ExtentRun& run, std::uint64_t from);
  [[nodiscard]] Status read_long(const Extent& extent);
  [[nodiscard]] Status read_raw(std::uint64_t offset, std::span<std::byte> out);

  const Reader* reader_ = nullptr;  // null: unchecked
  File* data_ = nullptr;
  std::unique_ptr<Window> window_;
  std::uint64_t scanned_ = 0;
};

// Into .dat of a component that is being created in pieces. They rise and are disjoint; sums are not touched. alone:
// nobody else writes the file at the same time, so that pieces that lie close together may be written with what lies
// between them. kNoSpace, kIo: any of them may have been written.
[[nodiscard]] Status write_extents(File& data, std::span<const ConstExtent> extents, bool alone);

// Asks for early write-back of a .dat that is written in pieces, so that the sync of its seal has less to do. Several
// fill the same pages at about the same pace: what is asked for lies far enough behind, and this object asks for no
// byte twice, wherever the pieces are. Thread-safety: all.
class WritebackBehind {
 public:
  // Pieces in these bytes were written: what is to be asked for now.
  std::optional<Range> due(const Range& written);
  // The same, and asks for it.
  void passed(File& data, const Range& written) {
    if (const auto range = due(written)) data.start_writeback(range->begin, range->size());
  }

 private:
  static constexpr std::uint64_t kNothing = UINT64_MAX;
  std::atomic<std::uint64_t> next_ = kNothing;  // byte: those before it were asked for, or lie before the first piece
};

// The component that was written so ends here, with so many rows and bytes (fixed records): the files get that size,
// and each chunk its sum. Holes are not read. Nobody writes it. Does not sync.
[[nodiscard]] Result<Tail> sum_scattered(const Shape& shape, Files& files, std::uint64_t rows, std::uint64_t bytes);

}  // namespace pif::component
