// Blocks of consecutive records of a committed file, read through descriptors, and their bytes in the order of the
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "file/file_state.h"
#include "pif/access/row_range.h"

namespace pif::client {

// Memory that is taken again and again. Nothing is filled in before a read does.
class BlockMemory {
 public:
  // So many bytes, valid until the next call; what was in them is lost.
  std::span<std::byte> take(std::size_t size);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

// One block is read into it, and then the next one.
struct NearBlock {
  // Variable records of one LFS, as they lie there: ends[i] to ends[i + 1] of .dat is row i of them, and bytes[0] is
  // byte ends[0].
  struct Rows {
    std::vector<std::uint64_t> ends;
    BlockMemory bytes;
  };
  Range records;
  std::span<const std::byte> bytes;  // of these, packed: in `memory`, or in `rows` if there is one LFS
  BlockMemory memory;
  std::vector<access::RowRange> ranges;
  std::vector<Rows> rows;  // variable records: of these ranges
};

class NearBlocks {
 public:
  // file: every LFS that has rows of `records` is open, and near; it outlives this. Records: as the file's length is
  // known now, which is the length that all blocks are read by.
  NearBlocks(FileState& file, Range records);

  // How many there are, and the records of one of them.
  std::uint64_t count() const { return count_; }
  Range records_of(std::uint64_t index) const;
  // So many bytes one is expected to have.
  std::uint64_t bytes_expected() const;
  // Any thread, each with a block of its own, while no other call of the file is under way. Errors: what descriptors
  // cannot give, and kTooLarge for a block with far more bytes than its number of records lets expect. Then
  // RecordReader has to read these records.
  [[nodiscard]] Status read(std::uint64_t index, NearBlock& block) const;

 private:
  [[nodiscard]] Status read_fixed(NearBlock& block) const;
  [[nodiscard]] Status read_variable(NearBlock& block) const;
  [[nodiscard]] Status read_ends(NearBlock& block, std::uint64_t& bytes) const;

  FileState& file_;
  const Range records_;
  const FileLength file_length_;
  const std::uint64_t block_records_;
  const std::uint64_t count_;
};

}  // namespace pif::client
