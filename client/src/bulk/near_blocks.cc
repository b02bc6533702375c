#include "bulk/near_blocks.h"

#include <algorithm>
#include <cstring>

#include "bulk/blocks.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kBytesOverExpected = 2;  // times as many bytes as expected may be in a block
constexpr std::size_t kStep = 64;                // bytes that are copied at once
constexpr std::uint64_t kRowsMax = 64u << 10;    // of one LFS in a block: bounds the ends in memory
static_assert(kBytesOverExpected * kOrderedBlock.bytes_max <= kRecordLengthMax, "no row of a block is too long");

std::uint64_t bytes_aimed_at(const FileState& file) {
  return std::clamp(file.width() * kOrderedBlock.bytes_per_lfs, kOrderedBlock.bytes_min, kOrderedBlock.bytes_max);
}

std::uint64_t records_per_near_block(const FileState& file, const FileLength& file_length) {
  if (file.parts.format.is_fixed()) return records_per_block(file, kOrderedBlock);
  const std::uint64_t average = file_length.records == 0 ? 1 : file_length.bytes / file_length.records + 1;
  return std::clamp<std::uint64_t>(bytes_aimed_at(file) / average, 1, kRowsMax * file.width());
}

// Where the next row of one LFS is.
struct Cursor {
  const std::byte* from;
  const std::uint64_t* end;  // end[0] to end[1]
};

// Up to kStep - 1 bytes behind both are read and written, too: a call of memcpy() takes longer than most lines do.
inline void copy_row(std::byte* to, Cursor& row) {
  const std::size_t size = row.end[1] - row.end[0];
  for (std::size_t at = 0; at < size; at += kStep) std::memcpy(to + at, row.from + at, kStep);
  row.from += size;
  ++row.end;
}

// Round robin.
void gather_even(std::span<Cursor> rows, std::uint64_t records, std::byte* to) {
  PIF_ASSERT(!rows.empty(), records);
  for (std::uint64_t done = 0; done < records; done += rows.size()) {
    for (Cursor& row : rows.first(std::min<std::uint64_t>(rows.size(), records - done))) {
      const std::size_t size = row.end[1] - row.end[0];
      copy_row(to, row);
      to += size;
    }
  }
}

// In whatever order the layout has them. by_lfs: where the LFS's cursor is.
void gather_by_layout(const parity::Layout& layout, Range records, std::span<Cursor> rows,
                      std::span<const std::size_t> by_lfs, std::byte* to) {
  PIF_ASSERT(by_lfs.size() == layout.width(), by_lfs.size(), layout.width());
  for (RecordNumber n = records.begin; n < records.end; ++n) {
    Cursor& row = rows[by_lfs[layout.locate(n).lfs]];
    const std::size_t size = row.end[1] - row.end[0];
    copy_row(to, row);
    to += size;
  }
}

}  // namespace

std::span<std::byte> BlockMemory::take(std::size_t size) {
  if (size > capacity_) {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
    capacity_ = size;
  }
  PIF_ASSERT(size <= capacity_, size, capacity_);
  return {bytes_.get(), size};
}

NearBlocks::NearBlocks(FileState& file, Range records)
    : file_(file),
      records_(records),
      file_length_(file.length.now()),
      block_records_(records_per_near_block(file, file_length_)),
      count_((records.size() + block_records_ - 1) / block_records_) {}

Range NearBlocks::records_of(std::uint64_t index) const {
  PIF_ASSERT(index < count_, index, count_);
  const RecordNumber first = records_.begin + index * block_records_;
  return {first, std::min(records_.end, first + block_records_)};
}

std::uint64_t NearBlocks::bytes_expected() const {
  const Format& format = file_.parts.format;
  return format.is_fixed() ? block_records_ * format.record_length : bytes_aimed_at(file_);
}

Status NearBlocks::read(std::uint64_t index, NearBlock& block) const {
  PIF_ASSERT(index < count_, index, count_);
  block.records = records_of(index);
  access::split(file_.parts.layout, block.records, block.ranges);
  return file_.parts.format.is_fixed() ? read_fixed(block) : read_variable(block);
}

Status NearBlocks::read_fixed(NearBlock& block) const {
  const std::uint64_t length = file_.parts.format.record_length;
  const std::uint64_t end = std::min(block.records.end * length, file_length_.bytes);
  PIF_ASSERT(end >= block.records.begin * length, block.records.begin, end);
  const auto out = block.memory.take(end - block.records.begin * length);
  for (const access::RowRange& rows : block.ranges)
    PIF_TRY(file_.reader.read_near({rows, out.data(), block.records.begin, file_length_, 0}));
  block.bytes = out;
  return {};
}

Status NearBlocks::read_ends(NearBlock& block, std::uint64_t& bytes) const {
  if (block.rows.size() < block.ranges.size()) block.rows.resize(block.ranges.size());
  for (std::size_t i = 0; i < block.ranges.size(); ++i) {
    const access::RowRange& range = block.ranges[i];
    std::vector<std::uint64_t>& ends = block.rows[i].ends;
    ends.resize(range.rows + 1);
    PIF_TRY(file_.component(range.lfs).reader().read_ends(range.row, range.rows, ends));
    bytes += ends.back() - ends.front();
    if (bytes > kBytesOverExpected * bytes_expected()) return fail(Code::kTooLarge, "a block has too many bytes");
  }
  return {};
}

Status NearBlocks::read_variable(NearBlock& block) const {
  std::uint64_t bytes = 0;
  PIF_TRY(read_ends(block, bytes));
  std::vector<Cursor> cursors;
  std::vector<std::size_t> by_lfs(file_.width());
  for (std::size_t i = 0; i < block.ranges.size(); ++i) {
    NearBlock::Rows& rows = block.rows[i];
    const std::size_t size = rows.ends.back() - rows.ends.front();
    const auto out = rows.bytes.take(size + kStep).first(size);
    PIF_TRY(file_.component(block.ranges[i].lfs).reader().read_bytes(rows.ends.front(), out));
    cursors.push_back({out.data(), rows.ends.data()});
    by_lfs[block.ranges[i].lfs] = i;
  }
  PIF_ASSERT(cursors.size() == block.ranges.size() && !cursors.empty(), cursors.size(), block.ranges.size());
  if (cursors.size() == 1) {
    block.bytes = {cursors[0].from, bytes};
    return {};
  }
  std::byte* const to = block.memory.take(bytes + kStep).data();
  if (file_.parts.layout.is_even()) {
    gather_even(cursors, block.records.size(), to);
  } else {
    gather_by_layout(file_.parts.layout, block.records, cursors, by_lfs, to);
  }
  block.bytes = {to, bytes};
  return {};
}

}  // namespace pif::client
