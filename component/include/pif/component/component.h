// One component (the part of a file on one LFS) on disk, and the checked ways to read and write it. Used by the LFS and
// by whoever holds its passed descriptors. docs/FORMAT.md "Component" draws every byte.
//
//   .dat   rows, packed: row i of fixed-length records is at i * record_length; variable rows one after another
//   .sum   chunk sums of .dat, little-endian: 8 bytes each; of form 1 16, {sum, stamp}
//   .idx   variable only: end offset of each row in .dat, 8 bytes each
//   .isum  variable only: chunk sums of .idx
//
// A chunk of .dat is chunk_bytes long (whole rows with fixed records), of .idx kIndexChunkBytes. Sums of full chunks
// are in the sum file; the sum of a partial last chunk travels with the length (Tail), in one transaction of the
// catalogue. A chunk's sum binds file, stream and position (base/checksum.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pif/base/checksum.h"
#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/component/storage.h"

namespace pif::component {

inline constexpr std::uint32_t kChunkBytesAim = 4096;    // small chunks make single-record reads cheap
inline constexpr std::uint32_t kIndexChunkBytes = 4096;  // 512 rows' end offsets
inline constexpr std::uint32_t kDataStream = 0;          // `stream` of chunk_mix
inline constexpr std::uint32_t kIndexStream = 1;
inline constexpr std::uint32_t kFormMax = 1;  // the highest Shape::form that this program knows

// Bytes of .dat under one sum: as many whole fixed records as fit kChunkBytesAim, at least one; kChunkBytesAim for
// variable ones.
std::uint32_t chunk_bytes_for(const Format& format);

struct Shape {
  FileId file;
  Format format;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t form = 0;  // proto::FileLayout.form. 1: sums of .dat bear stamps, which are all 0 so far

  // With the chunks that such records have. format: valid (Format::validate()).
  static Shape of(FileId file, const Format& format, std::uint32_t form) {
    return {file, format, chunk_bytes_for(format), form};
  }

  // Bytes of .sum for each full chunk of .dat.
  std::size_t sum_bytes() const { return form == 0 ? 8 : 16; }
  // The sum of a chunk of .dat that was never changed in place, as it is stored and as Tail::data_sum has it.
  std::uint64_t data_sum(std::uint64_t chunk, std::span<const std::byte> bytes) const {
    const std::uint64_t sum = chunk_sum(file, kDataStream, chunk, bytes);
    return form == 0 ? sum : sum ^ stamp_mix(0);
  }
};

// How long a component is, and the sums of its partial last chunks (0 where there is none).
struct Tail {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // of .dat
  std::uint64_t data_sum = 0;
  std::uint64_t index_sum = 0;
  bool operator==(const Tail&) const = default;
};

// The open files of one component.
struct Files {
  std::unique_ptr<File> data;
  std::unique_ptr<File> sums;
  std::unique_ptr<File> index;       // variable only
  std::unique_ptr<File> index_sums;  // variable only
};

// "ROOT/data/ab/<id>": the stem of a component's file names (ab: the id's low byte, so that folders fill evenly).
std::string stem(const std::string& root, FileId file);
// On the disk.
struct StoredBytes {
  std::uint64_t rows = 0;  // with index and sums
  std::uint64_t parity = 0;
};
// Bytes that the files of that stem take, as Storage::stored_bytes() says; missing ones take nothing.
[[nodiscard]] Result<StoredBytes> stored_bytes(Storage& storage, const std::string& stem);
// All files of a component. kCreate makes what is missing, and makes the folder durable, but not the names in it.
// kInvalid: the format; kNotFound: a file is missing; else as Storage::open().
Result<Files> open_files(Storage& storage, const std::string& stem, const Format& format, OpenMode mode);
// {data, sums[, index, index_sums]} in the order in which descriptors travel; with the access that `files` have.
Result<std::vector<Handle>> share(Files& files);
// Opens handles that share() gave, after they travelled. kInvalid: another number of handles than such a component has
// files, or one that is no regular file. It does not look into the files.
Result<Files> adopt(Storage& storage, const Format& format, std::vector<Handle> handles);
// Whatever of the component's files is there, its parity (parity.h) too; the folder is not synced.
Status remove_files(Storage& storage, const std::string& stem);
// File::sync() of all its files, one after another, up to the first error.
Status sync(Files& files);
// After Storage::sync_all: whether all of it is durable.
Status check_written(Files& files);

// kInvalid or kCorrupt unless a component of that shape can end there: what a catalogue says may have been written
// wrong.
[[nodiscard]] Status check_tail(const Shape& shape, const Tail& tail);

// Rows in memory at a fixed distance: row i of `count` starts at base + i * stride (stride >= record_length; equal:
// packed). The last row may be `last_bytes` long when it is the file's short last record.
struct Rows {
  std::byte* base = nullptr;
  std::size_t stride = 0;
};
struct ConstRows {
  const std::byte* base = nullptr;
  std::size_t stride = 0;
};

// Reads a published component and checks every byte it returns: kCorrupt names file, row and chunk. Other errors of all
// calls: kIo; kInvalid for a shape that cannot be, or a call that its format has not; kCorrupt for such a tail. After
// an error the content of `out` must not be used. Thread-safety: const calls from several threads are fine; set_tail
// needs all others out.
class Reader {
 public:
  // files outlive the reader.
  Reader(const Shape& shape, const Tail& tail, Files& files) : shape_(shape), tail_(tail), files_(&files) {}

  // How long the component is for this reader: nothing behind it is read. A new tail is one that its LFS has sent
  // since.
  const Tail& tail() const { return tail_; }
  void set_tail(const Tail& tail) { tail_ = tail; }
  // One that does not wait for a disk: its reads fail with kBusy where this one would have to. For event loops.
  Reader cached() const {
    Reader out = *this;
    out.only_cached_ = true;
    return out;
  }

  // Fixed records: rows [first, first + count) into `out`; reads that are whole chunks long go there without a copy.
  // kEndOfFile past the last row, also in the calls below. A short last row leaves the rest of its place untouched.
  [[nodiscard]] Status read_rows(Row first, std::uint64_t count, Rows out) const;
  // Variable records: end offsets: ends[0] = start of row `first`, ends[i] = end of row first + i - 1; count + 1 of
  // them.
  [[nodiscard]] Status read_ends(Row first, std::uint64_t count, std::span<std::uint64_t> ends) const;
  // Bytes [offset, offset + out.size()) of .dat, any format.
  [[nodiscard]] Status read_bytes(std::uint64_t offset, std::span<std::byte> out) const;
  // Checks bytes [offset, offset + size) of .dat where they are mapped: `mapped` is .dat from its first byte on,
  // kCorrupt if it is shorter than tail() says.
  [[nodiscard]] Status check_bytes(std::uint64_t offset, std::uint64_t size, std::span<const std::byte> mapped) const;

  // Reads everything and lists what does not hold, at most 100 lines ("chunk 17 (rows 680 to 719):
  // checksum ..."); empty: all holds. Chunks that the disk cannot read are among them, and no error.
  [[nodiscard]] Result<std::vector<std::string>> check() const;

 private:
  friend class ExtentReader;  // extents.h
  Shape shape_;
  Tail tail_;
  Files* files_;
  bool only_cached_ = false;
};

// Writes a component that nobody reads yet, or the unpublished part of one. Keeps the sums right whatever the order.
// Small writes gather in memory (256 KiB per stream) until finish().
// Thread-safety: one thread, or several on disjoint stretches of whole chunks (write_rows only); the last stretch may
// end anywhere. Several Writers may likewise share a component; one that leaves a gap finishes after those that fill
// it. After an error any part may have been written: the same call again, or truncate() to where it began, mends that;
// until then finish() fails.
class Writer {
 public:
  // Goes on after `tail` (all zero for a new component). `files`, open for writing, outlive the writer. If they may be
  // longer than `tail` (rows written but never published), truncate(tail.rows) first: otherwise a gap would read as
  // what is there.
  Writer(const Shape& shape, const Tail& tail, Files& files);
  ~Writer();                  // without finish(): what is gathered is lost
  Writer(Writer&&) noexcept;  // moved from, it may only be assigned to and destroyed
  Writer& operator=(Writer&&) noexcept;

  // Fixed records: rows [first, first + count); the last one is last_bytes long (0: whole), which only the file's short
  // last record may be. Rows may be written in any order and again; a gap reads as zeros. kCorrupt: a chunk written in
  // part was read back and did not match its sum.
  [[nodiscard]] Status write_rows(Row first, std::uint64_t count, ConstRows in, std::uint32_t last_bytes = 0);
  // Variable records: rows after the last one. lengths: one per row; data: their bytes, packed. kInvalid: lengths that
  // do not add up to data.size(), or fixed records; kTooLarge: a length over kRecordLengthMax.
  [[nodiscard]] Status append_rows(std::span<const std::uint32_t> lengths, std::span<const std::byte> data);
  // Forgets rows from `row` on (variable: so that a repeated batch can be written again; fixed: a shorter component),
  // and cuts the files there. kInvalid: row > rows().
  [[nodiscard]] Status truncate(Row row);
  // Everything written is in the files, with sums of full chunks; the tail says the rest. Does not sync.
  [[nodiscard]] Result<Tail> finish();

  // Rows and bytes of .dat as far as it is written here, with those that were there before; gaps count.
  std::uint64_t rows() const;
  std::uint64_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes sums of full chunks of .dat, from first_chunk on: of Shape::data_sum(). files: open for writing.
[[nodiscard]] Status write_sums(const Shape& shape, Files& files, std::uint64_t first_chunk,
                                std::span<const std::uint64_t> sums);

// Makes `target` hold what `source` holds under another file id, and perhaps in another form: data cloned (or copied
// with large reads and writes where the file system cannot clone), sums bound anew without reading the data. Format and
// chunks of the two shapes are the same (else kInvalid). Returns the new tail, and in *cloned (if given) whether no
// data was moved. `keep_going(bytes done)` is asked between pieces: false stops with
// kCancelled.
[[nodiscard]] Result<Tail> copy_component(const Shape& source_shape, const Tail& source_tail, Files& source,
                                          const Shape& target_shape, Files& target, bool* cloned,
                                          const std::function<bool(std::uint64_t)>& keep_going);

}  // namespace pif::component
