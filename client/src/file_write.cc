// Writing fixed records of a file being created, and the stages that gather rows for messages.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "file_state.h"
#include "pif/base/limits.h"
#include "pool.h"
#include "stage.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u << 10;
constexpr std::uint64_t kStagesBytes = 16u << 20;    // of all LFSs of a file together
constexpr std::uint64_t kBehindBytes = 16u << 20;    // sent, or waiting to be, and not yet acknowledged
constexpr std::uint64_t kStageBytesMin = 16u << 10;
constexpr std::uint64_t kWritebackBytes = 8u << 20;  // of one component

// Rows of one share as memory: straight from the user's, or (parity cells among them) packed with zeros in between.
struct PackedRows {
  component::ConstRows rows;
  std::vector<std::byte> copy;
};

PackedRows rows_of(const FileState& file, const Share& share, RecordNumber origin, std::span<const std::byte> in) {
  const std::size_t length = file.parts.format.record_length;
  if (share.even) {
    return {{in.data() + (share.record - origin) * length, length * file.width()}, {}};
  }
  PackedRows packed;
  packed.copy.resize(share.rows * length);
  for (std::uint64_t i = 0; i < share.rows; ++i) {
    const auto record = record_of(file.parts.layout, share, i);
    if (!record) continue;
    const std::size_t from = (*record - origin) * length;
    std::memcpy(packed.copy.data() + i * length, in.data() + from, std::min(length, in.size() - from));
  }
  packed.rows = {packed.copy.data(), length};
  return packed;
}

// Bytes of the share's last row if it is the batch's short last record, else 0.
std::uint32_t short_last_of(const FileState& file, const Share& share, Range records, std::uint32_t last_bytes) {
  if (last_bytes == 0) return 0;
  const Cell last = file.parts.layout.locate(records.end - 1);
  return last.lfs == share.lfs && last.row == share.row + share.rows - 1 ? last_bytes : 0;
}

}  // namespace

std::uint64_t stage_limit(const FileState& file) {
  return std::clamp<std::uint64_t>(kStagesBytes / file.width(), kStageBytesMin, kBulkBytes);
}

namespace {

Status stage_rows(FileState& file, LfsIndex lfs, Row row, std::uint64_t count, component::ConstRows in,
                  std::uint32_t last_bytes) {
  const std::size_t length = file.parts.format.record_length;
  Stage& stage = file.ports[lfs].stage;
  const std::uint64_t limit = stage_limit(file);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool follows = stage.rows > 0 && !stage.closed && row + i == stage.first + stage.rows;
    if (stage.rows > 0 && (!follows || stage.data.size() + length > limit)) PIF_TRY(file.flush_stage(lfs));
    if (stage.rows == 0) {
      stage.first = row + i;
      stage.data.reserve(std::max<std::size_t>(limit, length));
    }
    const std::byte* from = in.base + i * in.stride;
    const bool is_short = last_bytes != 0 && i == count - 1;
    stage.data.insert(stage.data.end(), from, from + (is_short ? last_bytes : length));
    ++stage.rows;
    stage.closed = is_short;
  }
  return {};
}

// Asks for write-back of what is written, in pieces, so that sealing finds little to sync.
void write_back(Port& port, std::uint64_t end_bytes) {
  if (end_bytes < port.written_back + kWritebackBytes) return;
  port.files.data->start_writeback(port.written_back, end_bytes - port.written_back);
  port.written_back = end_bytes;
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
  const std::uint64_t records = file.extent.records;
  if (first > records) {
    return fail(Code::kEndOfFile, fmt::format("{}: record {} is past the end, which is at {}", file.parts.path, first, records));
  }
  const bool ends_short = records > 0 && file.extent.bytes < records * length;
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

Status FileState::write_created(RecordNumber first, std::span<const std::byte> in) {
  const std::uint64_t length = parts.format.record_length;
  const std::uint64_t count = (in.size() + length - 1) / length;
  const auto last_bytes = static_cast<std::uint32_t>(in.size() % length);
  if (count == 0) return {};
  PIF_TRY(check_created(*this, first, count, last_bytes));
  const Range records{first, first + count};
  split(parts.layout, records, shares_);
  for (const Share& share : shares_) PIF_TRY(open_writer(share.lfs));
  std::vector<Status> outcome(shares_.size());
  const auto write_share = [&](std::size_t i) {
    const Share& share = shares_[i];
    Port& port = ports[share.lfs];
    if (!port.writer) return;
    const PackedRows packed = rows_of(*this, share, first, in);
    outcome[i] = port.writer->write_rows(share.row, share.rows, packed.rows, short_last_of(*this, share, records, last_bytes));
    write_back(port, (share.row + share.rows) * length);
  };
  const bool parallel = in.size() >= kParallelBytes && shares_.size() > 1;
  if (parallel) session->pool().run(shares_.size(), write_share);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    Port& port = ports[share.lfs];
    if (port.writer) {
      if (!parallel) write_share(i);
      if (!outcome[i]) {
        outcome[i].error().node = parts.nodes[share.lfs].name();
        return outcome[i];
      }
      port.unfinished = true;
      counts.bytes_by_descriptor += share.rows * length;
    } else {
      const PackedRows packed = rows_of(*this, share, first, in);
      PIF_TRY(stage_rows(*this, share.lfs, share.row, share.rows, packed.rows,
                         short_last_of(*this, share, records, last_bytes)));
    }
    port.rows = std::max(port.rows, share.row + share.rows);
  }
  extent.records = std::max(extent.records, first + count);
  extent.bytes = std::max(extent.bytes, first * length + in.size());
  return {};
}

Status FileState::write(RecordNumber first, std::span<const std::byte> in) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (!parts.format.is_fixed()) {
    return fail(Code::kInvalid, fmt::format("{}: records of variable length are written in batches", parts.path));
  }
  if (creating()) return write_created(first, in);
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
  PIF_TRY_VALUE(const Extent now, length_for(first + count));
  if (first > now.records) {
    return fail(Code::kEndOfFile, fmt::format("{}: record {} is past the end, which is at {}", parts.path, first, now.records));
  }
  const std::uint64_t inside = std::min(count, now.records - first);
  const std::size_t inside_bytes = std::min<std::size_t>(in.size(), inside * length);
  if (count > inside) PIF_TRY(append({}, in.subspan(inside_bytes), false, &now.bytes));
  if (inside == 0) return {};
  Requests requests(*this);
  PIF_TRY(overwrite(first, in.first(inside_bytes), requests));
  return requests.run();
}

}  // namespace pif::client
