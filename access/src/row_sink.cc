#include "pif/access/row_sink.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pif/access/row_copies.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::access {

namespace {

constexpr std::size_t kDirectStageBytes = 256u
                                          << 10;  // variable rows gathered before they are written through a descriptor

// Rows as memory: straight from the user's, or packed where their distances vary.
struct PackedRows {
  component::ConstRows rows;
  std::vector<std::byte> copy;
};

PackedRows rows_of(const FileParts& parts, const RowRange& rows, RecordNumber origin, std::span<const std::byte> in) {
  const std::size_t length = parts.format.record_length;
  if (rows.even) return {{in.data() + (rows.record - origin) * length, length * parts.layout.width()}, {}};
  PackedRows packed;
  packed.copy = gather(parts, rows, origin, in);
  packed.rows = {packed.copy.data(), length};
  return packed;
}

// Bytes of the last of `rows` if it is the batch's short last record, else 0.
std::uint32_t short_last_of(const FileParts& parts, const RowRange& rows, Range records, std::uint32_t last_bytes) {
  if (last_bytes == 0) return 0;
  const Cell last = parts.layout.locate(records.end - 1);
  return last.lfs == rows.lfs && last.row == rows.row + rows.rows - 1 ? last_bytes : 0;
}

}  // namespace

RowSink::RowSink(const FileParts& parts, LfsIndex lfs, component::Files& files, const component::Tail& tail)
    : parts_(parts), lfs_(lfs), rows_(tail.rows), bytes_(tail.bytes) {
  PIF_ASSERT(lfs < parts.layout.width() && files.data != nullptr, lfs, parts.layout.width());
  PIF_ASSERT(!parts.creating || !parts.is_absent(lfs), lfs, parts.view);
  writer_.emplace(parts.stored_shape(), tail, files);
}

RowSink::RowSink(const FileParts& parts, LfsIndex lfs, const ByMessage& by_message)
    : parts_(parts), lfs_(lfs), by_message_(by_message) {
  PIF_ASSERT(lfs < parts.layout.width() && by_message.stage_bytes > 0, lfs, by_message.stage_bytes);
}

std::uint64_t RowSink::rows() const { return writer_ && parts_.format.is_fixed() ? writer_->rows() : rows_; }
std::uint64_t RowSink::bytes() const { return writer_ && parts_.format.is_fixed() ? writer_->bytes() : bytes_; }

Status RowSink::check_open() const {
  if (!end_) return {};
  return fail(Code::kInvalid, fmt::format("{}: nothing can be written to a component that is finished", parts_.path));
}

// ---- fixed records -------------------------------------------------------------------------------------------------

// One row into the stage: behind its last, or over one it has.
Status RowSink::stage_fixed(Row row, std::span<const std::byte> bytes) {
  PIF_ASSERT(by_message_ && bytes.size() <= length(), bytes.size(), length());
  if (copies()) PIF_TRY(check_keeper(parts_, lfs_, row));
  const bool inside = row >= stage_.first && row < stage_.first + stage_.rows;
  const bool follows = row == stage_.first + stage_.rows && stage_.rows * length() == stage_.data.size();
  const bool fits = inside || (follows && stage_.data.size() + length() <= by_message_->stage_bytes);
  if (stage_.rows > 0 && !fits) PIF_TRY(send_stage());
  if (stage_.rows == 0) {
    stage_.first = row;
    if (!by_message_->small) stage_.data.reserve(std::max(by_message_->stage_bytes, length()));
  }
  const std::size_t at = (row - stage_.first) * length();
  if (at + bytes.size() > stage_.data.size()) stage_.data.resize(at + bytes.size());
  std::memcpy(stage_.data.data() + at, bytes.data(), bytes.size());
  stage_.rows = std::max(stage_.rows, row - stage_.first + 1);
  rows_ = std::max(rows_, row + 1);
  bytes_ = std::max(bytes_, row * length() + bytes.size());
  return {};
}

Status RowSink::write_rows(Row first, std::uint64_t count, component::ConstRows in, std::uint32_t last_bytes) {
  if (count == 0) return {};
  PIF_TRY(check_open());
  PIF_ASSERT(last_bytes <= length(), last_bytes, length());
  if (writer_) {
    changed_.store(true, std::memory_order_relaxed);
    return writer_->write_rows(first, count, in, last_bytes);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_short = last_bytes != 0 && i == count - 1;
    PIF_TRY(stage_fixed(first + i, {in.base + i * in.stride, is_short ? last_bytes : length()}));
  }
  return {};
}

Status RowSink::write_records(const RowRange& rows, Range records, std::span<const std::byte> in) {
  PIF_ASSERT(rows.lfs == lfs_ && rows.rows > 0, rows.lfs, lfs_, rows.rows);
  PIF_ASSERT((in.size() + length() - 1) / length() == records.size(), in.size(), length(), records.size());
  const PackedRows packed = rows_of(parts_, rows, records.begin, in);
  const auto last_bytes = static_cast<std::uint32_t>(in.size() % length());
  auto status = write_rows(rows.row, rows.rows, packed.rows, short_last_of(parts_, rows, records, last_bytes));
  if (!status && status.error().node.empty()) status.error().node = parts_.nodes[lfs_].name();
  return status;
}

// ---- variable records ----------------------------------------------------------------------------------------------

Status RowSink::stage_variable(std::span<const std::byte> bytes) {
  if (copies()) PIF_TRY(check_keeper(parts_, lfs_, rows_));
  const std::uint64_t limit = writer_ ? kDirectStageBytes : by_message_->stage_bytes;
  if (stage_.rows > 0 && stage_.size() + bytes.size() + sizeof(std::uint32_t) > limit) PIF_TRY(flush());
  if (stage_.rows == 0) stage_.first = rows_;
  PIF_ASSERT(stage_.first + stage_.rows == rows_, stage_.first, stage_.rows, rows_);
  stage_.lengths.push_back(static_cast<std::uint32_t>(bytes.size()));
  stage_.data.insert(stage_.data.end(), bytes.begin(), bytes.end());
  ++stage_.rows;
  ++rows_;
  bytes_ += bytes.size();
  return {};
}

Status RowSink::check_next(Row row) const {
  if (row == rows_) return {};
  return fail(Code::kInvalid,
              fmt::format("{}: variable records must be written in order: row {} after {}", parts_.path, row, rows_),
              parts_.nodes[lfs_].name());
}

Status RowSink::append_row(Row row, std::span<const std::byte> bytes) {
  PIF_TRY(check_open());
  PIF_TRY(check_next(row));
  return stage_variable(bytes);
}

Status RowSink::append_rows(Row first, std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  PIF_TRY(check_open());
  PIF_TRY(check_next(first));
  if (writer_) {
    PIF_TRY(flush());
    changed_.store(true, std::memory_order_relaxed);
    PIF_TRY(writer_->append_rows(lengths, data));
    rows_ += lengths.size();
    bytes_ += data.size();
    PIF_ASSERT(rows_ == writer_->rows() && bytes_ == writer_->bytes(), rows_, writer_->rows(), bytes_,
               writer_->bytes());
    return {};
  }
  for (const std::uint32_t length : lengths) {
    PIF_TRY(stage_variable(data.first(length)));
    data = data.subspan(length);
  }
  return {};
}

// ---- what is gathered ----------------------------------------------------------------------------------------------

Status RowSink::send_stage() {
  PIF_ASSERT(by_message_ && stage_.rows > 0, stage_.rows);
  Stage stage = std::exchange(stage_, {});
  const bool in_order = !by_message_->small || stage.size() > kSmallBodyBytes;  // of a small file there is one
  by_message_->moved += stage.data.size();
  if (copies()) return send_copies(stage, in_order);
  send_rows(std::move(stage), in_order);
  return {};
}

Status RowSink::send_copies(const Stage& stage, bool in_order) {
  const RowRange rows{lfs_, stage.first, stage.rows, parts_.layout.record_at({lfs_, stage.first}), false};
  CopyOptions options;
  options.in_order = in_order;
  return add_copies(by_message_->requests, rows, stage, options);
}

void RowSink::send_rows(Stage stage_of_rows, bool in_order) {
  auto stage = std::make_shared<Stage>(std::move(stage_of_rows));
  BulkRequest request;
  request.lfs = lfs_;
  request.bytes = stage->size();
  request.in_order = in_order;
  request.patient = true;
  request.make = [&parts = parts_, lfs = lfs_, stage = std::move(stage)] {
    net::Packet packet;
    proto::Write& write = *packet.envelope.mutable_write();
    *write.mutable_shape() = parts.shape(lfs);
    write.set_first(stage->first);
    write.set_count(stage->rows);
    packet.body = stage->to_buffer();
    return packet;
  };
  by_message_->requests.add(std::move(request));
}

Status RowSink::flush() {
  if (stage_.rows == 0) return {};
  if (by_message_) return send_stage();
  changed_.store(true, std::memory_order_relaxed);
  auto status = writer_->append_rows(stage_.lengths, stage_.data);
  if (!status) {
    status.error().node = parts_.nodes[lfs_].name();
    return status;
  }
  stage_.rows = 0;
  stage_.lengths.clear();
  stage_.data.clear();
  return {};
}

std::span<const std::byte> RowSink::gathered(const RowRange& rows) const {
  const bool is_here = by_message_ && parts_.format.is_fixed() && rows.row >= stage_.first &&
                       rows.row + rows.rows <= stage_.first + stage_.rows;
  if (!is_here) return {};
  return std::span(stage_.data).subspan((rows.row - stage_.first) * length());
}

Result<std::optional<component::Tail>> RowSink::show() {
  PIF_ASSERT(writer_ && !end_, lfs_);
  PIF_TRY(flush());
  if (!changed_.load(std::memory_order_relaxed)) return std::optional<component::Tail>();
  PIF_TRY_VALUE(const component::Tail tail, writer_->finish());
  changed_.store(false, std::memory_order_relaxed);
  return std::optional(tail);
}

// ---- the end -------------------------------------------------------------------------------------------------------

void RowSink::set_end(const component::Tail& tail) {
  PIF_ASSERT(!end_ && stage_.rows == 0, lfs_, stage_.rows);
  end_ = ComponentEnd{lfs_, true, tail};
  writer_.reset();
  rows_ = tail.rows;
  bytes_ = tail.bytes;
}

Result<ComponentEnd> RowSink::finish() {
  if (end_) return *end_;
  PIF_TRY(flush());
  component::Tail tail{rows_, bytes_, 0, 0};
  if (writer_) {
    PIF_TRY_VALUE(tail, writer_->finish());
    rows_ = tail.rows;
    bytes_ = tail.bytes;
  }
  end_ = ComponentEnd{lfs_, writer_.has_value(), tail};
  writer_.reset();
  return *end_;
}

}  // namespace pif::access
