#include "token/subfile.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "pif/base/packed.h"
#include "pif/tool/numbered.h"
#include "pif/tool/read_ahead.h"

namespace pif::sort {

// ---- blocks ---------------------------------------------------------------------------------------------------------

void Block::clear() {
  numbers.clear();
  records.clear();
  keys.clear();
  shipped = 0;
  mended.clear();
  gathered.clear();
}

Status BlockMaker::add(std::uint64_t number, Bytes record, Block& block) {
  if (format_.size(record) != record.size()) {
    auto& mended = block.mended.emplace_back(format_.size(record));
    format_.copy(record, mended.data());
    record = mended;
  }
  block.numbers.push_back(number);
  block.records.push_back(record);
  if (keys_only_) {
    block.keys.add({reinterpret_cast<const char*>(record.data()), record.size()}, number);
    return {};
  }
  if (maker_.plain_offset()) {
    block.keys.add({reinterpret_cast<const char*>(record.data()) + *maker_.plain_offset(), *maker_.fixed_length()},
                   number);
    return {};
  }
  PIF_TRY(maker_.make_full_key(record, number, key_));
  block.keys.add(key_);
  return {};
}

Status BlockMaker::add(Bytes number_and_record, Block& block) {
  const auto number = PackedNumbers<std::uint64_t>::take(number_and_record, 1);
  if (!number) return fail(Code::kCorrupt, "a record of a sub-file came without its number");
  if ((*number)[0] >= input_records_)
    return fail(Code::kCorrupt,
                fmt::format("a record of a sub-file came with number {} of {}", (*number)[0], input_records_));
  return add((*number)[0], number_and_record, block);
}

// ---- parts ----------------------------------------------------------------------------------------------------------

void Part::keep(std::uint64_t, net::Buffer) {}

void Part::drop(std::uint64_t block) {
  dropped_[block] = true;
  while (first_ < dropped_.size() && dropped_[first_]) ++first_;
}

Status Part::accept(Row first, std::uint64_t count, net::Buffer body, bool placed) {
  const std::uint64_t block = first / shape_.block_records;
  const std::uint64_t blocks = shape_.window_blocks == 0 ? shape_.blocks() : shape_.window_blocks;
  const bool asked = first < shape_.rows && block >= first_ && block - first_ < blocks && count > 0 &&
                     count <= shape_.block_size(block) - come_[block] && (!placed || takes_placed_);
  if (!asked) return fail(Code::kInvalid, fmt::format("row {} of a sub-file, which was not asked for", first));
  come_[block] += static_cast<std::uint32_t>(count);
  all_come_ += count;
  if (placed) return {};
  const Row end = block * shape_.block_records + shape_.block_size(block);
  PIF_TRY(tool::for_each_record(first, count, shape_.record_length, std::as_const(body).span(),
                                [&](Row row, Bytes record) -> Status {
                                  if (row >= end || record.size() < kNumberBytes)
                                    return fail(Code::kInvalid, "rows of two blocks as one");
                                  return put(row, record);
                                }));
  keep(block, std::move(body));
  return {};
}

// ---- the worker's own runs ------------------------------------------------------------------------------------------

namespace {

PartShape shape_of(const std::vector<RunView>& runs, std::uint64_t block_records) {
  PartShape shape;
  shape.block_records = block_records;
  for (const RunView& run : runs) shape.rows += run.elements.size();
  return shape;
}

}  // namespace

OwnPart::OwnPart(std::vector<RunView> runs, Order& order, const KeyMaker& keys, BlockMaker maker,
                 std::uint64_t block_records)
    : Part(shape_of(runs, block_records)),
      runs_(std::move(runs)),
      order_(order),
      keys_(keys),
      maker_(std::move(maker)) {
  std::vector<std::size_t> end;
  for (const RunView& run : runs_) end.push_back(run.elements.size());
  merger_.emplace(runs_, std::vector<std::size_t>(runs_.size()), std::move(end), order_);
}

// The picked records, one behind another: they are looked at again, when none of them is in the cache any more.
void OwnPart::gather(std::vector<std::byte>& into) const {
  for (std::size_t i = 0; i < picks_.size(); ++i) {
    if (i + 2 * kAhead < picks_.size()) runs_[picks_[i + 2 * kAhead].run].fetch_place(picks_[i + 2 * kAhead].index);
    if (i + kAhead < picks_.size()) runs_[picks_[i + kAhead].run].fetch(picks_[i + kAhead].index);
    const Bytes record = runs_[picks_[i].run].record(picks_[i].index);
    into.insert(into.end(), record.begin(), record.end());
  }
}

// The same, but only their keys, which elements have if they are short.
Status OwnPart::gather_keys(std::vector<std::byte>& into) const {
  const std::size_t length = *keys_.fixed_length();
  into.resize(picks_.size() * length);
  std::byte* to = into.data();
  std::string key;
  for (const Pick pick : picks_) {
    const RunView& run = runs_[pick.run];
    if (length <= kChunkBytes) {
      const auto chunk = chunk_of(run.elements[pick.index]);
      std::memcpy(to, chunk.data(), length);
    } else {
      PIF_TRY(keys_.make_key(run.record(pick.index), key));
      std::memcpy(to, key.data(), length);
    }
    to += length;
  }
  return {};
}

Status OwnPart::load(std::uint64_t, Block& into) {
  picks_.clear();
  for (; picks_.size() < shape_.block_records && !merger_->is_done(); merger_->advance())
    picks_.push_back(merger_->peek());
  if (maker_.keys_only()) {
    PIF_TRY(gather_keys(into.gathered));
  } else {
    gather(into.gathered);
  }
  Bytes rest = into.gathered;
  for (const Pick pick : picks_) {
    const RunView& run = runs_[pick.run];
    const std::size_t size = maker_.keys_only() ? *keys_.fixed_length() : run.record(pick.index).size();
    PIF_TRY(maker_.add(order_.number(run, pick.index), rest.first(size), into));
    rest = rest.subspan(size);
  }
  return {};
}

Status OwnPart::put(Row, Bytes) { return fail(Code::kInvalid, "rows of this worker's own runs"); }

// ---- records of one length ------------------------------------------------------------------------------------------

namespace {

class FixedPart final : public Part {
 public:
  FixedPart(const PartShape& shape, BlockMaker maker, bool is_shared)
      : Part(shape, is_shared), maker_(std::move(maker)) {}

  [[nodiscard]] Status open(tool::Worker& worker) {
    rows_ =
        shape_.window_blocks == 0 ? shape_.rows : std::min(shape_.rows, shape_.window_blocks * shape_.block_records);
    const std::uint64_t bytes = rows_ * shape_.record_length;
    if (shape_.window_blocks > 0 || shape_.in_memory) {
      PIF_TRY_VALUE(area_.memory, tool::SharedMemory::make(bytes));
    } else {
      PIF_TRY_VALUE(area_.file, worker.scratch());
      PIF_TRY(area_.file.allocate(bytes));
    }
    memory_ = area_.space();
    return {};
  }
  [[nodiscard]] Status load(std::uint64_t block, Block& into) override {
    const Row first = block * shape_.block_records, end = first + shape_.block_size(block);
    if (!area_.file.empty()) tool::read_ahead(area_.bytes().subspan(first * shape_.record_length, two_blocks(block)));
    for (Row row = first; row < end; ++row) {
      if (row + kAhead < end) fetch(place(row + kAhead));  // other cores wrote it
      PIF_TRY(maker_.add(place(row), into));
    }
    return {};
  }
  const Area* memory() const override { return &area_; }

 private:
  // Bytes of this block and the next one.
  std::size_t two_blocks(std::uint64_t block) const {
    const std::uint64_t next = block + 1 < shape_.blocks() ? shape_.block_size(block + 1) : 0;
    return (shape_.block_size(block) + next) * shape_.record_length;
  }
  std::span<std::byte> place(Row row) const {
    return memory_.subspan(row % rows_ * shape_.record_length, shape_.record_length);
  }
  [[nodiscard]] Status put(Row row, Bytes record) override {
    std::memcpy(place(row).data(), record.data(), record.size());
    return {};
  }

  BlockMaker maker_;
  Area area_;
  std::span<std::byte> memory_;
  std::uint64_t rows_ = 0;  // of the memory
};

// ---- records whose lengths differ -----------------------------------------------------------------------------------

class ScratchPart final : public Part {
 public:
  ScratchPart(const PartShape& shape, BlockMaker maker) : Part(shape), maker_(std::move(maker)), missing_(shape.rows) {}

  [[nodiscard]] Status open(tool::Worker& worker) {
    PIF_TRY_VALUE(data_, worker.scratch());
    PIF_TRY_VALUE(index_, worker.scratch());
    return index_.allocate(shape_.rows * sizeof(Place));
  }
  bool is_full(std::uint64_t) const override { return missing_ == 0; }  // only then can it be read
  [[nodiscard]] Status load(std::uint64_t block, Block& into) override {
    const Row first = block * shape_.block_records;
    read_ahead({first, first + shape_.block_size(block)});
    for (Row row = first; row < first + shape_.block_size(block); ++row) {
      PIF_TRY(maker_.add(data_.bytes().subspan(places()[row].offset, places()[row].length), into));
    }
    return {};
  }

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  // Records came from several workers, so they lie here and there.
  void read_ahead(Range rows) {
    std::vector<Place> wanted(places().begin() + rows.begin, places().begin() + rows.end);
    std::ranges::sort(wanted, {}, &Place::offset);
    tool::ReadAhead ahead;
    for (const Place& place : wanted) ahead.add(data_.bytes().subspan(place.offset, place.length));
  }
  std::span<Place> places() { return {reinterpret_cast<Place*>(index_.space().data()), shape_.rows}; }
  [[nodiscard]] Status put(Row row, Bytes record) override {
    if (places()[row].length > 0) return fail(Code::kInvalid, fmt::format("row {} of a sub-file twice", row));
    places()[row] = {data_.size(), record.size()};
    PIF_TRY(data_.append(record));
    return --missing_ > 0 ? Status() : data_.map();
  }

  BlockMaker maker_;
  tool::Scratch data_, index_;
  std::uint64_t missing_;
};

class WindowPart final : public Part {
 public:
  WindowPart(const PartShape& shape, BlockMaker maker) : Part(shape), maker_(std::move(maker)) {}

  [[nodiscard]] Status load(std::uint64_t block, Block& into) override {
    for (const Bytes record : waiting_.at(block).records) PIF_TRY(maker_.add(record, into));
    return {};
  }
  void drop(std::uint64_t block) override {
    waiting_.erase(block);
    Part::drop(block);
  }

 private:
  struct Waiting {
    std::vector<Bytes> records;
    std::vector<net::Buffer> bodies;  // where they are
  };
  [[nodiscard]] Status put(Row row, Bytes record) override {
    const std::uint64_t block = row / shape_.block_records;
    auto& records = waiting_[block].records;
    records.resize(shape_.block_size(block));
    Bytes& place = records[row % shape_.block_records];
    if (!place.empty()) return fail(Code::kInvalid, fmt::format("row {} of a sub-file twice", row));
    place = record;
    return {};
  }
  void keep(std::uint64_t block, net::Buffer body) override { waiting_[block].bodies.push_back(std::move(body)); }

  BlockMaker maker_;
  std::map<std::uint64_t, Waiting> waiting_;
};

template <typename T>
Result<std::unique_ptr<Part>> opened(tool::Worker& worker, std::unique_ptr<T> part) {
  PIF_TRY(part->open(worker));
  return part;
}

}  // namespace

Result<std::unique_ptr<Part>> make_part(tool::Worker& worker, const PartShape& shape, BlockMaker maker,
                                        bool is_shared) {
  if (shape.record_length > 0) return opened(worker, std::make_unique<FixedPart>(shape, std::move(maker), is_shared));
  if (shape.window_blocks > 0) return std::make_unique<WindowPart>(shape, std::move(maker));
  return opened(worker, std::make_unique<ScratchPart>(shape, std::move(maker)));
}

}  // namespace pif::sort
