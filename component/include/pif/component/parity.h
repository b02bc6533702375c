// The parity of its companions' rows that an LFS keeps (Dibble 1990, chapter 4; docs/FORMAT.md "Parity"), and how rows
// are rebuilt from it. Used by the LFS and by whoever holds its passed descriptors.
//
//   .par   pages: the XOR of one stretch of rows of each member
//   .psum  an entry per page: sums, where it ends, and the vector: a hash of each member's stretch
//   .pap   frames: copies of rows that are in no page yet
//
// Parity row j has one row of each member: row j * members + offset. A page is page_rows() consecutive parity rows; a
// member's stretch is its rows of one page, in order. Only groups that are full, of whole records, get into pages.
// Which LFSs are members, and their offsets, says parity::Layout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/component/component.h"
#include "pif/component/storage.h"

namespace pif::component {

inline constexpr std::uint32_t kPageStream = 2;    // `stream` of chunk_mix: of a page's bytes
inline constexpr std::uint32_t kVectorStream = 3;  // of what stands in .psum behind both sums
inline constexpr std::uint32_t kFrameStream = 4;   // of frames; the record's number takes the chunk's place
inline constexpr std::uint64_t kVariablePageRows = 32;

struct ParityShape {
  FileId file;
  Format format;                       // valid
  std::vector<std::uint32_t> offsets;  // of the members, by rising LFS: each below offsets.size(), which is B - 1 >= 1

  std::size_t members() const { return offsets.size(); }  // how many: B - 1
  // K: so many parity rows in a page. max(1, 4096 / record length); 32 of variable records.
  std::uint64_t page_rows() const;
  // The member's row in parity row j. member < members().
  Row row_of(std::size_t member, std::uint64_t parity_row) const { return parity_row * members() + offsets[member]; }
  // How many groups are full if the members have so many whole rows each; size members().
  std::uint64_t full_groups(std::span<const std::uint64_t> rows) const;
};

// Rows in memory, one after another. lengths: of each; fixed records too.
struct PackedRows {
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> lengths;
};

// Where rows of one component come from: each has been checked against the component's sums.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Rows first, first + step, ...: of `count` of them as many as make about kSourceBytes, at least one (none of none);
  // out.lengths.size() says how many. `out` is replaced. step >= 1. Any thread, one at a time. kEndOfFile if the
  // `count` rows are not all there; kCorrupt; else what the disk or the network says.
  [[nodiscard]] virtual Status read(Row first, std::uint64_t count, std::uint64_t step, PackedRows& out) = 0;
};
inline constexpr std::size_t kSourceBytes = 1u << 20;
// Through a reader, which outlives it. Rows far apart are read one by one, others with what lies between them.
std::unique_ptr<RowSource> make_row_source(const Shape& shape, const Reader& reader);

// The open files. A file that is not there yet is null: no page, or no frame, has been written.
struct ParityFiles {
  std::unique_ptr<File> pages;   // .par
  std::unique_ptr<File> sums;    // .psum
  std::unique_ptr<File> frames;  // .pap
};
// stem: as of the component. kCreate makes what is missing. Else as open_files().
[[nodiscard]] Result<ParityFiles> open_parity(Storage& storage, const std::string& stem, OpenMode mode);
// {pages, sums}, {frames}, or all three, {pages, sums, frames}: what is there; and back. Nothing of it: no handles.
// kInvalid: another number of handles.
[[nodiscard]] Result<std::vector<Handle>> share(ParityFiles& files);
[[nodiscard]] Result<ParityFiles> adopt_parity(Storage& storage, std::vector<Handle> handles);
// File::sync(), or File::check_written(), of all that are there.
[[nodiscard]] Status sync(ParityFiles& files);
[[nodiscard]] Status check_written(ParityFiles& files);

// ---- pages ----

// CRC-64 of `bytes`, going on from `crc` (0 at the beginning): reflected ECMA, register 0, no final XOR, so that
// hash(a ^ b) = hash(a) ^ hash(b) of the same length. "123456789" gives 2b9c7ee4e2780c8a.
std::uint64_t linear_hash(std::uint64_t crc, std::span<const std::byte> bytes);
// The hash of a member's stretch, as it stands in the vector: fixed records: of all its bytes; variable: of rows i the
// XOR of rotl(hash of length (u32, little-endian) and bytes, i).
std::uint64_t stretch_hash(const Format& format, const PackedRows& rows);

struct VectorEntry {
  std::uint64_t hash = 0;
  std::uint64_t number = 0;  // the member's, of the last change in place that this page has; 0: none
};
// A page that has been checked.
struct Page {
  std::vector<std::byte> bytes;     // fixed: K rows; variable: K x {XOR of lengths, longest} (u32), then padded rows
  std::vector<VectorEntry> vector;  // by member
};

// Makes pages [first, first + count) out of the members' rows: .par and .psum, which must be open for writing. sources:
// by member. Variable records: page `first` goes behind page first - 1, which must be there; if lengths are others than
// before, the pages behind it are made anew, too. Does not sync. Memory: about kSourceBytes per member, or two records
// if these are longer. Errors: those of the sources, kIo, kNoSpace, kCorrupt for a row that is shorter than it must be;
// then any part may have been written, and the same call again mends that.
[[nodiscard]] Status write_pages(const ParityShape& shape, ParityFiles& files, std::uint64_t first, std::uint64_t count,
                                 std::span<RowSource* const> sources);
// kCorrupt, naming file and page, unless page and vector are what was written; kEndOfFile past the end of .psum.
[[nodiscard]] Result<Page> read_page(const ParityShape& shape, ParityFiles& files, std::uint64_t page);
// Where the page begins and ends in .par; variable records: as its entry in .psum says, which is checked.
[[nodiscard]] Result<Range> page_bytes(const ParityShape& shape, ParityFiles& files, std::uint64_t page);

// The stretch of `lost` in a page: the page XOR the others' stretches. sources: by member, that of `lost` is not used
// (null). kCorrupt if it does not hash to its vector entry, or another one does not: then it names that member.
[[nodiscard]] Result<PackedRows> rebuild_stretch(const ParityShape& shape, ParityFiles& files, std::uint64_t page,
                                                 std::size_t lost, std::span<RowSource* const> sources);

// Whether the page's bytes in .par are the XOR of the members' stretches, though sum and vector in .psum are others:
// then these are of another time. sources: by member, all of them. Errors: those of the sources, of .par and its place.
[[nodiscard]] Result<bool> is_of_rows(const ParityShape& shape, ParityFiles& files, std::uint64_t page,
                                      std::span<RowSource* const> sources);

// Looks at pages [0, pages): their sums, and if all sources are there that they are the XOR of the members' stretches;
// of each member whose source is there that its stretches hash to their vector entries. sources: by member, null:
// unknown; or none at all. Adds lines to `damages`, which name page and member, until it has 100. Errors of single
// pages and sources are lines, too.
[[nodiscard]] Status check_parity(const ParityShape& shape, ParityFiles& files, std::uint64_t pages,
                                  std::span<RowSource* const> sources, std::vector<std::string>& damages);

// ---- frames ----

inline constexpr std::uint64_t kFrameMagic = 0x31656d6172465270;  // "pRFrame1"
inline constexpr std::size_t kFrameHeaderBytes = 48;

// The copy of one row, as it lies in .pap: magic, index, bytes, generation, number, hash (8 bytes each), the row, then
// zeros up to a multiple of 8. hash: hash_bytes of the header before it and of the row, ^ chunk_mix(file, kFrameStream,
// index).
struct Frame {
  RecordNumber record = 0;
  std::uint64_t generation = 0;  // of the append that wrote it; 0: of the create
  std::uint64_t number = 0;
  std::uint64_t offset = 0;  // of the row's bytes in .pap
  std::uint32_t bytes = 0;
};
// So much of .pap the frame of a row takes.
constexpr std::uint64_t frame_bytes(std::uint64_t row_bytes) { return kFrameHeaderBytes + (row_bytes + 7) / 8 * 8; }
struct NewFrame {
  RecordNumber record = 0;
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  std::span<const std::byte> row;
};
// Adds them behind `end` (a multiple of 8), with few writes. Does not sync. Where they end now, again a multiple of 8.
// kTooLarge: a row over kRecordLengthMax.
[[nodiscard]] Result<std::uint64_t> write_frames(FileId file, ParityFiles& files, std::uint64_t end,
                                                 std::span<const NewFrame> frames);
// Behind all that was ever written to .pap: where frames may go if nobody knows where the last one ends.
[[nodiscard]] Result<std::uint64_t> behind_frames(ParityFiles& files);

// All frames that hold, of each record those of all generations.
struct FrameIndex {
  std::multimap<RecordNumber, Frame> frames;
  std::uint64_t end = 0;             // behind the last that holds: where the next one goes
  std::vector<std::string> damages;  // what lies in front of a frame and is none: at most 100 lines
  // Among frames of the record that have `bytes` bytes: the one of highest (generation, number). Null: there is none.
  const Frame* find(RecordNumber record, std::uint32_t bytes) const;
  // Variable records, whose bytes nobody knows.
  const Frame* find(RecordNumber record) const;
  // Only those of that generation; bytes: nothing for variable records.
  const Frame* find(RecordNumber record, std::optional<std::uint32_t> bytes, std::uint64_t generation) const;
};
// From `begin` on (rounded up to a multiple of 8). Bytes that are no frame are passed over until the next one: zeros
// are holes, and a torn end is no error. Without files.frames: none. Memory: the index, and 1 MiB.
[[nodiscard]] Result<FrameIndex> scan_frames(FileId file, ParityFiles& files, std::uint64_t begin);
// The row, checked again: kCorrupt. `out` is replaced.
[[nodiscard]] Status read_frame(FileId file, ParityFiles& files, const Frame& frame, std::vector<std::byte>& out);
// The rows of several, in their order, checked: one read for those that follow one another in .pap.
[[nodiscard]] Status read_frames(FileId file, ParityFiles& files, std::span<const Frame> frames, PackedRows& out);

}  // namespace pif::component
