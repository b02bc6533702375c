#include "subfile.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "pif/tool/ranked.h"

namespace pif::sort {
namespace {

tl::unexpected<Error> not_asked_for(Row row) {
  return fail(Code::kInvalid, fmt::format("another worker sent row {} of a sub-file, which was not asked for", row));
}

}  // namespace

Status Part::accept(Row first, std::uint64_t, net::Buffer) { return not_asked_for(first); }

// ---- blocks ---------------------------------------------------------------------------------------------------------

void BlockMaker::add(std::uint64_t number, Bytes record, Block& block) {
  const std::size_t at = block.data.size();
  block.data.resize(at + kNumberBytes + format_.size(record));
  std::memcpy(block.data.data() + at, &number, kNumberBytes);
  format_.copy(record, block.data.data() + at + kNumberBytes);
  block.ends.push_back(block.data.size());
  (void)maker_.make_key(record, key_);  // it was made in the local phase, so it can be made
  const std::uint64_t big_endian = __builtin_bswap64(number);
  key_.append(reinterpret_cast<const char*>(&big_endian), sizeof big_endian);
  block.keys.add(key_);
}

void BlockMaker::add(Bytes number_and_record, Block& block) {
  std::uint64_t number = 0;
  std::memcpy(&number, number_and_record.data(), kNumberBytes);
  add(number, number_and_record.subspan(kNumberBytes), block);
}

// ---- the worker's own runs ------------------------------------------------------------------------------------------

OwnPart::OwnPart(std::vector<RunView> runs, Order& order, BlockMaker maker, std::uint64_t block_records)
    : runs_(std::move(runs)), order_(order), maker_(std::move(maker)), block_records_(block_records) {
  std::vector<std::size_t> end;
  for (const RunView& run : runs_) {
    end.push_back(run.elements.size());
    records_ += run.elements.size();
  }
  merger_.emplace(runs_, std::vector<std::size_t>(runs_.size()), std::move(end), order_);
}

Status OwnPart::load(std::uint64_t, Block& into) {
  for (std::uint64_t i = 0; i < block_records_ && !merger_->is_done(); ++i, merger_->advance()) {
    const Pick pick = merger_->peek();
    maker_.add(order_.number(runs_[pick.run], pick.index), runs_[pick.run].record(pick.index), into);
  }
  return {};
}

// ---- in scratch files -----------------------------------------------------------------------------------------------

Result<std::unique_ptr<Part>> ScratchPart::make(tool::Worker& worker, const PartShape& shape, BlockMaker maker) {
  std::unique_ptr<ScratchPart> part(new ScratchPart(shape, std::move(maker)));
  PIF_TRY_VALUE(part->data_, worker.scratch());
  if (shape.record_length > 0) {
    PIF_TRY(part->data_.allocate(shape.rows * shape.record_length));
  } else {
    PIF_TRY_VALUE(part->index_, worker.scratch());
    PIF_TRY(part->index_.allocate(shape.rows * sizeof(Place)));
  }
  return part;
}

Status ScratchPart::put(Row row, Bytes record) {
  if (row >= shape_.rows || missing_ == 0 || record.size() < kNumberBytes) return not_asked_for(row);
  --missing_;
  if (shape_.record_length > 0) {
    std::memcpy(data_.space().data() + row * shape_.record_length, record.data(), record.size());
    return {};
  }
  places()[row] = {data_.size(), record.size()};
  PIF_TRY(data_.append(record));
  return missing_ > 0 ? Status() : data_.map();
}

Status ScratchPart::accept(Row first, std::uint64_t count, net::Buffer body) {
  return tool::for_each_record(first, count, shape_.record_length, std::as_const(body).span(),
                               [this](Row row, Bytes record) { return put(row, record); });
}

Status ScratchPart::load(std::uint64_t block, Block& into) {
  const Row first = block * shape_.block_records;
  for (Row row = first; row < first + shape_.block_size(block); ++row) {
    const Bytes data = data_.bytes();
    if (shape_.record_length > 0) {
      maker_.add(data.subspan(row * shape_.record_length, shape_.record_length), into);
    } else {
      maker_.add(data.subspan(places()[row].offset, places()[row].length), into);
    }
  }
  return {};
}

// ---- in memory ------------------------------------------------------------------------------------------------------

bool WindowPart::is_full(std::uint64_t block) const {
  return block >= first_ && block - first_ < window_.size() && window_[block - first_].come == shape_.block_size(block);
}

Status WindowPart::accept(Row first, std::uint64_t count, net::Buffer body) {
  const std::uint64_t block = first / shape_.block_records;
  if (first >= shape_.rows || block < first_ || block - first_ >= window_blocks_) return not_asked_for(first);
  while (window_.size() <= block - first_) window_.emplace_back();
  Waiting& waiting = window_[block - first_];
  waiting.records.resize(shape_.block_size(block));
  const auto put = [&](Row row, Bytes record) -> Status {
    const std::uint64_t at = row - block * shape_.block_records;
    if (at >= waiting.records.size() || !waiting.records[at].empty() || record.size() < kNumberBytes) return not_asked_for(row);
    waiting.records[at] = record;
    ++waiting.come;
    ++come_;
    return {};
  };
  PIF_TRY(tool::for_each_record(first, count, shape_.record_length, std::as_const(body).span(), put));
  waiting.bodies.push_back(std::move(body));
  return {};
}

Status WindowPart::load(std::uint64_t block, Block& into) {
  Waiting& waiting = window_[block - first_];
  for (const Bytes record : waiting.records) maker_.add(record, into);
  waiting.bodies.clear();  // it is copied
  waiting.records = std::vector<Bytes>();
  return {};
}

void WindowPart::drop(std::uint64_t block) {
  window_[block - first_].dropped = true;
  for (; !window_.empty() && window_.front().dropped; ++first_) window_.pop_front();
}

}  // namespace pif::sort
