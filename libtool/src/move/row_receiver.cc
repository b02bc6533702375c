#include <cstring>

#include <fmt/format.h>

#include "move/rows.h"
#include "pif/base/assert.h"

namespace pif::tool {

RowReceiver::RowReceiver(Output& output, const FileLength& file_length, const WindowSize& window)
    : output_(output), window_(window) {
  PIF_ASSERT(window_.piece > 0 && window_.rows > 0 && window_.rows % window_.piece == 0, window_.piece, window_.rows);
  const parity::Layout& layout = output.layout();
  const Format& format = output.format();
  rows_ = layout.rows(output.index(), file_length.records);
  if (!format.is_fixed()) {
    slots_.resize(std::min(window_.rows, rows_));
    gathered_.record_length = 0;
    return;
  }
  if (rows_ == 0) return;
  last_bytes_ = fixed_record_bytes(format.record_length, file_length, layout.record_at({output.index(), rows_ - 1}));
  for (Row first = 0; first < window_.rows; first += window_.piece) missing_.push_back(rows_in(first));
}

Status RowReceiver::open() {
  if (!output_.format().is_fixed() || rows_ == 0) return {};
  PIF_TRY_VALUE(ring_, SharedMemory::make(window_.rows * output_.format().record_length));
  return {};
}

std::uint64_t RowReceiver::rows_in(Row first) const {
  return first < rows_ ? std::min(window_.piece, rows_ - first) : 0;
}

// What the pieces of the window lack gets less by the rows that there are not.
Status RowReceiver::end(Row rows) {
  const Row window_end = std::min(settled_ + window_.rows, rows_);
  if (!is_open_) return fail(Code::kInvalid, fmt::format("{}: its end is known already", output_.file().path));
  if (rows < settled_)
    return fail(Code::kInvalid,
                fmt::format("{}: an end at row {}, where {} are written", output_.file().path, rows, settled_));
  const auto too_many = [&] {
    return fail(Code::kInvalid, fmt::format("{}: rows from {} on, behind the last one", output_.file().path, rows));
  };
  for (Row row = rows; row < window_end && !slots_.empty(); ++row)
    if (slots_[row % slots_.size()].body) return too_many();
  for (Row first = settled_; first < window_end && !missing_.empty(); first += window_.piece) {
    std::uint64_t& missing = missing_[first % window_.rows / window_.piece];
    const std::uint64_t there = rows > first ? std::min(window_.piece, rows - first) : 0;
    if (missing < rows_in(first) - there) return too_many();
    missing -= rows_in(first) - there;
  }
  rows_ = rows;
  is_open_ = false;
  return advance();
}

Status RowReceiver::not_asked_for(const RowMessage& message) const {
  return fail(Code::kInvalid,
              fmt::format("{}: rows from {} (count {}, stride {}) do not fit the window that starts at row {}",
                          output_.file().path, message.first, message.count, message.stride, settled_));
}

Status RowReceiver::accept(RowMessage message) {
  const bool fixed = output_.format().is_fixed();
  const auto body = std::make_shared<net::Buffer>(std::move(message.body));
  const bool counts_fit = message.count > 0 && message.count <= window_.rows && message.stride <= window_.rows &&
                          message.first >= settled_ && (fixed || !message.placed);
  std::span<const std::byte> rest = std::as_const(*body).span();
  auto gaps = std::optional<RowGaps>(RowGaps());
  if (message.stride == 0) gaps = RowGaps::take(rest, message.count, Room::kAsNeeded);
  if (!counts_fit || !gaps) return not_asked_for(message);
  if (fixed) {
    PIF_TRY(tick_off(message, *gaps));
    PIF_TRY(accept_fixed(message, *gaps, rest));
  } else {
    PIF_TRY(accept_variable(message, *gaps, rest, body));
  }
  return advance();
}

// ---- fixed records ------------------------------------------------------------------------------------------------

std::uint64_t RowReceiver::distance_of(const RowMessage& message, const RowGaps& gaps, std::uint64_t i) {
  PIF_ASSERT(gaps.empty() == (message.stride > 0), gaps.size(), message.stride);
  return gaps.empty() ? i * message.stride : i + gaps[i];
}

// Counts the message's rows as come, piece by piece.
Status RowReceiver::tick_off(const RowMessage& message, const RowGaps& gaps) {
  const Row end = std::min(settled_ + window_.rows, rows_);
  if (message.first + (message.count - 1) * message.stride >= end) return not_asked_for(message);
  for (std::uint64_t i = 0; i < message.count;) {
    const Row row = message.first + distance_of(message, gaps, i);
    if (row < settled_ || row >= end) return not_asked_for(message);
    const Row piece_end = (row / window_.piece + 1) * window_.piece;
    const std::uint64_t here = !gaps.empty() ? 1 : (piece_end - row + message.stride - 1) / message.stride;
    const std::uint64_t count = std::min(here, message.count - i);
    const std::uint64_t piece = row % window_.rows / window_.piece;
    PIF_ASSERT(count > 0 && piece < missing_.size(), count, piece, missing_.size());
    std::uint64_t& missing = missing_[piece];
    if (missing < count) return not_asked_for(message);
    missing -= count;
    i += count;
  }
  return {};
}

// The rows are ticked off, so they are in the window.
Status RowReceiver::accept_fixed(const RowMessage& message, const RowGaps& gaps, std::span<const std::byte> data) {
  if (message.placed) return data.empty() ? Status{} : not_asked_for(message);
  const std::uint32_t length = output_.format().record_length;
  for (std::uint64_t i = 0; i < message.count; ++i) {
    const Row row = message.first + distance_of(message, gaps, i);
    PIF_ASSERT(row >= settled_ && row < settled_ + window_.rows && row < rows_, row, settled_, rows_);
    const std::uint32_t bytes = row + 1 == rows_ ? last_bytes_ : length;
    if (data.size() < bytes) return not_asked_for(message);
    std::memcpy(ring_.bytes().data() + row % window_.rows * length, data.data(), bytes);
    data = data.subspan(bytes);
  }
  return data.empty() ? Status{} : not_asked_for(message);
}

Status RowReceiver::advance_fixed() {
  const std::uint32_t length = output_.format().record_length;
  while (settled_ < rows_) {
    const std::uint64_t place = settled_ % window_.rows;
    PIF_ASSERT(place % window_.piece == 0 && (place + window_.piece) * length <= ring_.bytes().size(), place,
               window_.piece, ring_.bytes().size());
    std::uint64_t& missing = missing_[place / window_.piece];
    if (missing > 0) return {};
    const std::uint64_t count = std::min(window_.piece, rows_ - settled_);
    std::byte* const base = ring_.bytes().data() + place * length;
    const bool is_last = settled_ + count == rows_;
    PIF_TRY(output_.sink().write_rows(settled_, count, {base, length}, is_last ? last_bytes_ : 0));
    missing = rows_in(settled_ + window_.rows);
    settled_ += count;
  }
  return {};
}

// ---- variable records ---------------------------------------------------------------------------------------------

Status RowReceiver::accept_variable(const RowMessage& message, const RowGaps& gaps, std::span<const std::byte> data,
                                    std::shared_ptr<net::Buffer> body) {
  const auto lengths = NarrowNumbers::take(data, message.count, Room::kAlways);
  if (!lengths) return not_asked_for(message);
  const Row end = std::min(settled_ + window_.rows, rows_);
  for (std::uint64_t i = 0; i < message.count; ++i) {
    const Row row = message.first + distance_of(message, gaps, i);
    const std::uint32_t bytes = (*lengths)[i];
    if (row < settled_ || row >= end || data.size() < bytes) return not_asked_for(message);
    Slot& slot = slots_[row % slots_.size()];
    if (slot.body) return not_asked_for(message);
    slot = {body, data.data(), bytes};
    data = data.subspan(bytes);
  }
  return data.empty() ? Status{} : not_asked_for(message);
}

Status RowReceiver::write_gathered() {
  if (gathered_.lengths.empty()) return {};
  gathered_.count = gathered_.lengths.size();
  PIF_ASSERT(gathered_.first + gathered_.count == settled_, gathered_.first, gathered_.count, settled_);
  PIF_TRY(output_.write(gathered_));
  gathered_.first += gathered_.count;
  gathered_.lengths.clear();
  gathered_.data.clear();
  return {};
}

Status RowReceiver::advance_variable() {
  while (settled_ < rows_) {
    Slot& slot = slots_[settled_ % slots_.size()];
    if (!slot.body) break;
    gathered_.lengths.push_back(slot.length);
    gathered_.data.insert(gathered_.data.end(), slot.data, slot.data + slot.length);
    slot = {};
    ++settled_;
    if (gathered_.data.size() >= kBatchBytes || gathered_.lengths.size() >= window_.rows) PIF_TRY(write_gathered());
  }
  return write_gathered();
}

Status RowReceiver::advance() { return output_.format().is_fixed() ? advance_fixed() : advance_variable(); }

}  // namespace pif::tool
