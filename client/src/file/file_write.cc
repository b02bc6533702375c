// Writing fixed records of a file being created, and the stages that gather rows for messages.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/stage.h"
#include "pif/base/limits.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u << 10;
constexpr std::uint64_t kStagesBytes = 16u << 20;  // of all LFSs of a file together
constexpr std::uint64_t kBehindBytes = 16u << 20;  // sent, or waiting to be, and not yet acknowledged
constexpr std::uint64_t kStageBytesMin = 16u << 10;

// Rows of one range as memory: straight from the user's, or (parity cells among them) packed with zeros in between.
struct PackedRows {
  component::ConstRows rows;
  std::vector<std::byte> copy;
};

PackedRows rows_of(const FileState& file, const RowRange& range, RecordNumber origin, std::span<const std::byte> in) {
  const std::size_t length = file.parts.format.record_length;
  if (range.even) {
    return {{in.data() + (range.record - origin) * length, length * file.width()}, {}};
  }
  PackedRows packed;
  packed.copy.resize(range.rows * length);
  for (std::uint64_t i = 0; i < range.rows; ++i) {
    const auto record = record_of(file.parts.layout, range, i);
    if (!record) continue;
    const std::size_t from = (*record - origin) * length;
    std::memcpy(packed.copy.data() + i * length, in.data() + from, std::min(length, in.size() - from));
  }
  packed.rows = {packed.copy.data(), length};
  return packed;
}

// Bytes of the range's last row if it is the batch's short last record, else 0.
std::uint32_t short_last_of(const FileState& file, const RowRange& range, Range records, std::uint32_t last_bytes) {
  if (last_bytes == 0) return 0;
  const Cell last = file.parts.layout.locate(records.end - 1);
  return last.lfs == range.lfs && last.row == range.row + range.rows - 1 ? last_bytes : 0;
}

}  // namespace

std::uint64_t stage_limit(const FileState& file) {
  return std::clamp<std::uint64_t>(kStagesBytes / file.width(), kStageBytesMin, kBulkBytes);
}

namespace {

// One row into the stage: behind its last, or over one it has.
Status stage_row(FileState& file, LfsIndex lfs, Row row, std::span<const std::byte> bytes) {
  const std::size_t length = file.parts.format.record_length;
  const std::uint64_t limit = stage_limit(file);
  Stage& stage = file.ports[lfs].stage;
  const bool inside = row >= stage.first && row < stage.first + stage.rows;
  const bool follows = row == stage.first + stage.rows && stage.rows * length == stage.data.size();
  const bool fits = inside || (follows && stage.data.size() + length <= limit);
  if (stage.rows > 0 && !fits) PIF_TRY(file.flush_stage(lfs));
  if (stage.rows == 0) {
    stage.first = row;
    if (!file.is_small) stage.data.reserve(std::max<std::size_t>(limit, length));
  }
  const std::size_t at = (row - stage.first) * length;
  if (at + bytes.size() > stage.data.size()) stage.data.resize(at + bytes.size());
  std::memcpy(stage.data.data() + at, bytes.data(), bytes.size());
  stage.rows = std::max(stage.rows, row - stage.first + 1);
  return {};
}

Status stage_rows(FileState& file, LfsIndex lfs, Row row, std::uint64_t count, component::ConstRows in,
                  std::uint32_t last_bytes) {
  const std::size_t length = file.parts.format.record_length;
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_short = last_bytes != 0 && i == count - 1;
    PIF_TRY(stage_row(file, lfs, row + i, {in.base + i * in.stride, is_short ? last_bytes : length}));
  }
  return {};
}

}  // namespace

// The message's body: lengths (variable records), then the rows.
net::Buffer stage_body(const Stage& stage) {
  const std::size_t lengths_bytes = stage.lengths.size() * sizeof(std::uint32_t);
  net::Buffer body(lengths_bytes + stage.data.size());
  if (lengths_bytes > 0) std::memcpy(body.data(), stage.lengths.data(), lengths_bytes);
  if (!stage.data.empty()) std::memcpy(body.data() + lengths_bytes, stage.data.data(), stage.data.size());
  return body;
}

Status FileState::send_stage(LfsIndex lfs) {
  Port& port = ports[lfs];
  auto stage = std::make_shared<Stage>(std::move(port.stage));
  port.stage = {};
  BulkRequest request;
  request.lfs = lfs;
  request.bytes = stage->data.size() + stage->lengths.size() * sizeof(std::uint32_t);
  request.in_order = !is_small || request.bytes > access::kSmallBodyBytes;  // of a small file there is one
  request.patient = true;
  request.make = [this, lfs, stage] {
    net::Packet packet;
    proto::Write& write = *packet.envelope.mutable_write();
    *write.mutable_shape() = parts.shape(lfs);
    write.set_first(stage->first);
    write.set_count(stage->rows);
    packet.body = stage_body(*stage);
    return packet;
  };
  counts.bytes_by_message += stage->data.size();
  behind.add(std::move(request));
  PIF_TRY(behind.step());
  while (behind.bytes() > kBehindBytes) PIF_TRY(behind.pump());
  return {};
}

Status FileState::flush_all_stages() {
  for (LfsIndex lfs = 0; lfs < width(); ++lfs) PIF_TRY(flush_stage(lfs));
  return {};
}

// Checks what may be written where, and moves the end. last_bytes: of a short last record in `in`, else 0.
static Status check_created(const FileState& file, RecordNumber first, std::uint64_t count, std::uint32_t last_bytes) {
  const std::uint64_t length = file.parts.format.record_length;
  const std::uint64_t records = file.file_length.records;
  if (first > records) {
    return fail(Code::kEndOfFile,
                fmt::format("{}: record {} is past the end, which is at {}", file.parts.path, first, records));
  }
  const bool ends_short = records > 0 && file.file_length.bytes < records * length;
  if (ends_short && first == records) {
    return fail(Code::kInvalid, fmt::format("{}: the last record is short, so that no record can follow it; bytes can",
                                            file.parts.path));
  }
  if (last_bytes == 0 || first + count > records) return {};
  const bool same_last = first + count == records && ends_short && last_bytes >= file.record_bytes(records - 1);
  if (same_last) return {};
  return fail(Code::kInvalid, fmt::format("{}: {} bytes are no whole number of records of {} bytes, and not the end",
                                          file.parts.path, (count - 1) * length + last_bytes, length));
}

Status FileState::write_range(const RowRange& range, Range records, std::span<const std::byte> in) {
  const auto last_bytes = static_cast<std::uint32_t>(in.size() % parts.format.record_length);
  const PackedRows packed = rows_of(*this, range, records.begin, in);
  const std::uint32_t short_last = short_last_of(*this, range, records, last_bytes);
  auto status = ports[range.lfs].writer
                    ? ports[range.lfs].writer->write_rows(range.row, range.rows, packed.rows, short_last)
                    : stage_rows(*this, range.lfs, range.row, range.rows, packed.rows, short_last);
  if (!status && status.error().node.empty()) status.error().node = parts.nodes[range.lfs].name();
  return status;
}

void FileState::note_written(const RowRange& range) {
  Port& port = ports[range.lfs];
  port.rows = std::max(port.rows, range.row + range.rows);
  if (!port.writer) return;  // counted when it is sent
  port.unfinished = true;
  counts.bytes_by_descriptor += range.rows * parts.format.record_length;
}

Status FileState::write_created(RecordNumber first, std::span<const std::byte> in) {
  const std::uint64_t length = parts.format.record_length;
  const std::uint64_t count = (in.size() + length - 1) / length;
  if (count == 0) return {};
  PIF_TRY(check_created(*this, first, count, static_cast<std::uint32_t>(in.size() % length)));
  const Range records{first, first + count};
  split(parts.layout, records, ranges_);
  bool by_descriptor = true;
  for (const RowRange& range : ranges_) {
    PIF_TRY(open_writer(range.lfs));
    by_descriptor = by_descriptor && ports[range.lfs].writer;
  }
  if (by_descriptor && in.size() >= kParallelBytes && ranges_.size() > 1) {
    std::vector<Status> outcome(ranges_.size());
    session->pool().run(ranges_.size(), [&](std::size_t i) { outcome[i] = write_range(ranges_[i], records, in); });
    for (const Status& status : outcome) PIF_TRY(status);
  } else {
    for (const RowRange& range : ranges_) PIF_TRY(write_range(range, records, in));
  }
  for (const RowRange& range : ranges_) note_written(range);
  file_length.records = std::max(file_length.records, records.end);
  file_length.bytes = std::max(file_length.bytes, first * length + in.size());
  return {};
}

Status FileState::write(RecordNumber first, std::span<const std::byte> in) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (!parts.format.is_fixed()) {
    return fail(Code::kInvalid, fmt::format("{}: records of variable length are written in batches", parts.path));
  }
  if (creating()) return write_created(first, in);
  PIF_TRY(check_may_write());
  const Time deadline = session->clock().now() + session->timeout();
  while (true) {
    const auto status = write_committed(first, in);
    if (status || status.error().code != Code::kRetry || session->clock().now() >= deadline) return status;
  }
}

// Up to the end records are overwritten; what goes on from there is appended. kRetry: the end has moved.
Status FileState::write_committed(RecordNumber first, std::span<const std::byte> in) {
  const std::uint64_t length = parts.format.record_length;
  const std::uint64_t count = (in.size() + length - 1) / length;
  PIF_TRY_VALUE(const FileLength now, length_for(first + count));
  if (first > now.records) {
    return fail(Code::kEndOfFile,
                fmt::format("{}: record {} is past the end, which is at {}", parts.path, first, now.records));
  }
  const std::uint64_t inside = std::min(count, now.records - first);
  const std::size_t inside_bytes = std::min<std::size_t>(in.size(), inside * length);
  if (count > inside) PIF_TRY(append({}, in.subspan(inside_bytes), false, &now.bytes));
  return inside == 0 ? Status() : overwrite_all(first, in.first(inside_bytes));
}

}  // namespace pif::client
