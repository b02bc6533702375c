// Sub-files (Dibble 1990, section 5.3.1): sorted files between the local phase and the end, each on some of the workers, interleaved
// by blocks of records. A worker's part of one is either its own runs, merged as they are read, or what other workers send:
// kept in a scratch file until all of it is there (passes one after another), or in a window in memory (all passes at once).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "merge.h"
#include "output.h"
#include "pif/base/placement.h"
#include "pif/tool/scratch.h"
#include "token_words.h"

namespace pif::sort {

// Consecutive records of a sub-file. A record there is its number in the input (8 bytes, little-endian), then its bytes.
struct Block {
  std::vector<std::byte> data;
  std::vector<std::uint64_t> ends = {0};
  KeyList keys;                // of the records; each ends with the record's number, so that no two are equal
  std::uint64_t shipped = 0;   // records that are on their way into the next sub-file

  std::size_t size() const { return ends.size() - 1; }
  Bytes record(std::size_t i) const { return Bytes(data).subspan(ends[i], ends[i + 1] - ends[i]); }
};
inline constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

// Fills blocks: a record's number and bytes, and its key.
class BlockMaker {
 public:
  BlockMaker(const KeyMaker& maker, const Format& format) : maker_(maker), format_(format) {}
  void add(std::uint64_t number, Bytes record, Block& block);
  void add(Bytes number_and_record, Block& block);

 private:
  const KeyMaker& maker_;
  OutputRecord format_;
  std::string key_;
};

class Part {
 public:
  virtual ~Part() = default;
  // Blocks of this worker, from 0.
  virtual bool is_full(std::uint64_t block) const = 0;
  [[nodiscard]] virtual Status load(std::uint64_t block, Block& into) = 0;  // a full one; each once, in rising order
  virtual void drop(std::uint64_t) {}                     // it is not needed any more
  // What others sent; kInvalid if it was not asked for.
  [[nodiscard]] virtual Status accept(Row first, std::uint64_t count, net::Buffer body);
  virtual bool is_complete() const { return true; }       // all has come
  virtual Row settled() const { return 0; }               // rows below are dropped
};

// The worker's own runs.
class OwnPart final : public Part {
 public:
  // order and maker outlive it.
  OwnPart(std::vector<RunView> runs, Order& order, BlockMaker maker, std::uint64_t block_records);
  std::uint64_t records() const { return records_; }
  bool is_full(std::uint64_t) const override { return true; }
  [[nodiscard]] Status load(std::uint64_t block, Block& into) override;

 private:
  std::vector<RunView> runs_;
  Order& order_;
  BlockMaker maker_;
  std::uint64_t block_records_;
  std::uint64_t records_ = 0;
  std::optional<Merger> merger_;
};

struct PartShape {
  std::uint64_t rows = 0;            // records of the part
  std::uint64_t block_records = 1;
  std::uint32_t record_length = 0;   // with the number; 0: lengths differ

  std::uint64_t block_size(std::uint64_t block) const { return std::min(block_records, rows - block * block_records); }
};

// All of it, in scratch files.
class ScratchPart final : public Part {
 public:
  static Result<std::unique_ptr<Part>> make(tool::Worker& worker, const PartShape& shape, BlockMaker maker);
  bool is_full(std::uint64_t) const override { return missing_ == 0; }
  [[nodiscard]] Status load(std::uint64_t block, Block& into) override;
  [[nodiscard]] Status accept(Row first, std::uint64_t count, net::Buffer body) override;
  bool is_complete() const override { return missing_ == 0; }

 private:
  struct Place {  // of a record whose length is its own
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  ScratchPart(const PartShape& shape, BlockMaker maker) : shape_(shape), maker_(std::move(maker)), missing_(shape.rows) {}
  [[nodiscard]] Status put(Row row, Bytes record);
  std::span<Place> places() { return {reinterpret_cast<Place*>(index_.space().data()), shape_.rows}; }

  PartShape shape_;
  BlockMaker maker_;
  tool::Scratch data_, index_;
  std::uint64_t missing_;
};

// A window of blocks, in memory.
class WindowPart final : public Part {
 public:
  WindowPart(const PartShape& shape, BlockMaker maker, std::uint64_t window_blocks)
      : shape_(shape), maker_(std::move(maker)), window_blocks_(window_blocks) {}
  bool is_full(std::uint64_t block) const override;
  [[nodiscard]] Status load(std::uint64_t block, Block& into) override;
  void drop(std::uint64_t block) override;
  [[nodiscard]] Status accept(Row first, std::uint64_t count, net::Buffer body) override;
  bool is_complete() const override { return come_ == shape_.rows; }
  Row settled() const override { return first_ * shape_.block_records; }

 private:
  struct Waiting {
    std::vector<Bytes> records;
    std::vector<net::Buffer> bodies;  // where they are
    std::uint64_t come = 0;
    bool dropped = false;
  };
  PartShape shape_;
  BlockMaker maker_;
  std::uint64_t window_blocks_;
  std::uint64_t first_ = 0;      // block of window_[0]
  std::deque<Waiting> window_;
  std::uint64_t come_ = 0;
};

}  // namespace pif::sort
