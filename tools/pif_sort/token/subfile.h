// Sub-files (Dibble 1990, section 5.3.1): sorted files between the local phase and the end, each on some of the
// workers, interleaved by blocks of records. A worker's part of one is either its own runs, merged as they are read, or
// what other workers send: kept in scratch files until all of it is there (passes one after another), or in a window in
// memory (all passes at once).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "keys/key_list.h"
#include "output/output.h"
#include "pif/base/placement.h"
#include "runs/merge.h"
#include "runs/run.h"

namespace pif::sort {

// Consecutive records of a sub-file. They are where the part has them, until it drops the block.
struct Block {
  std::vector<std::uint64_t> numbers;  // of the records, in the input
  std::vector<Bytes> records;
  KeyList keys;                               // each ends with the record's number, so that no two are equal
  std::uint64_t shipped = 0;                  // records that are on their way into the next sub-file
  std::deque<std::vector<std::byte>> mended;  // lines that lacked their end
  std::vector<std::byte> gathered;            // records that lay scattered

  std::size_t size() const { return records.size(); }
  void clear();  // its memory stays
};

// On its way, a record is its number in the input (kNumberBytes, little-endian), then its bytes: or, where all workers
// have the input in memory and keys have one length, its sort key alone (keys_only).

// The input's records, by number, where all workers have its components in memory.
class InputRecords {
 public:
  InputRecords(const parity::Layout& layout, std::uint32_t record_length)  // layout outlives it
      : layout_(&layout), record_length_(record_length) {}
  void add(Area component) { components_.push_back(std::move(component)); }  // the next LFS's
  Bytes record(RecordNumber number) const {
    const Cell cell = layout_->locate(number);
    return components_[cell.lfs].bytes().subspan(cell.row * record_length_, record_length_);
  }

 private:
  const parity::Layout* layout_;
  std::uint32_t record_length_;
  std::vector<Area> components_;
};

// Fills blocks.
class BlockMaker {
 public:
  // input_records: numbers are below it.
  BlockMaker(const KeyMaker& maker, const Format& format, std::uint64_t input_records, bool keys_only)
      : maker_(maker), format_(format), input_records_(input_records), keys_only_(keys_only) {}
  bool keys_only() const { return keys_only_; }
  [[nodiscard]] Status add(std::uint64_t number, Bytes record, Block& block);
  // Reads a number that another worker sent: kCorrupt if there is no number in it, or one that no record has.
  [[nodiscard]] Status add(Bytes number_and_record, Block& block);

 private:
  const KeyMaker& maker_;
  OutputRecord format_;
  std::uint64_t input_records_;
  bool keys_only_;
  std::string key_;
};

struct PartShape {
  std::uint64_t rows = 0;  // records of the part
  std::uint64_t block_records = 1;
  std::uint32_t record_length = 0;  // with the number; 0: lengths differ
  std::uint64_t window_blocks = 0;  // 0: there is room for all of it,
  bool in_memory = false;           // even in memory, if records have one length

  std::uint64_t blocks() const { return (rows + block_records - 1) / block_records; }
  std::uint64_t block_size(std::uint64_t block) const { return std::min(block_records, rows - block * block_records); }
};

class Part {
 public:
  // takes_placed: others put records into memory(), and say so.
  explicit Part(const PartShape& shape, bool takes_placed = false)
      : shape_(shape), takes_placed_(takes_placed), come_(shape.blocks()), dropped_(shape.blocks()) {}
  virtual ~Part() = default;

  // Blocks of this worker, from 0. A full one can be loaded, once, in rising order.
  virtual bool is_full(std::uint64_t block) const { return come_[block] == shape_.block_size(block); }
  [[nodiscard]] virtual Status load(std::uint64_t block, Block& into) = 0;
  // It is not needed any more.
  virtual void drop(std::uint64_t block);
  // Takes others' records of one block; placed: the records are in memory() already. kInvalid if it was not asked for.
  [[nodiscard]] Status accept(Row first, std::uint64_t count, net::Buffer body, bool placed);
  virtual bool is_complete() const { return all_come_ == shape_.rows; }  // all has come
  // Rows from there on have room, as far as the window goes.
  Row settled() const { return std::min(first_ * shape_.block_records, shape_.rows); }
  // For records of one length: where all workers of the machine may put row r, at r mod its rows.
  virtual const Area* memory() const { return nullptr; }

 protected:
  [[nodiscard]] virtual Status put(Row row, Bytes record) = 0;
  virtual void keep(std::uint64_t block, net::Buffer body);

  const PartShape shape_;

 private:
  const bool takes_placed_;
  std::vector<std::uint32_t> come_;  // records of each block
  std::vector<bool> dropped_;
  std::uint64_t first_ = 0;  // block that is not dropped
  std::uint64_t all_come_ = 0;
};

// The worker's own runs.
class OwnPart final : public Part {
 public:
  // order and keys outlive it.
  OwnPart(std::vector<RunView> runs, Order& order, const KeyMaker& keys, BlockMaker maker, std::uint64_t block_records);
  bool is_full(std::uint64_t) const override { return true; }
  bool is_complete() const override { return true; }
  [[nodiscard]] Status load(std::uint64_t block, Block& into) override;

 private:
  [[nodiscard]] Status put(Row row, Bytes record) override;
  void gather(std::vector<std::byte>& into) const;
  [[nodiscard]] Status gather_keys(std::vector<std::byte>& into) const;

  std::vector<RunView> runs_;
  Order& order_;
  const KeyMaker& keys_;
  BlockMaker maker_;
  std::optional<Merger> merger_;
  std::vector<Pick> picks_;
};

// A block that others send: one of these, in a scratch file or (with a window) in memory. is_shared: others write to
// that memory.
Result<std::unique_ptr<Part>> make_part(tool::Worker& worker, const PartShape& shape, BlockMaker maker, bool is_shared);

}  // namespace pif::sort
