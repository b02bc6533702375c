// Records of variable length: batches, and where they are in the byte view.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/stage.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kRowsAtOnce = 64u << 10;      // of one LFS: bounds the lengths held in memory
constexpr std::size_t kDescriptorStage = 256u << 10;  // bytes gathered before they are written through a descriptor

// Consecutive rows of one LFS.
struct Fetched {
  Row first = 0;
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
  std::size_t offset = 0;  // of the next record's bytes: records are taken in order, and parity cells have none
};

Status read_ends(FileState& file, LfsIndex lfs, Row first, std::uint64_t count, std::span<std::uint64_t> ends) {
  auto status = file.ports[lfs].reader->read_ends(first, count, ends);
  if (status || file.creating()) return status;
  PIF_TRY(file.attach_again(lfs));
  return file.ports[lfs].reader->read_ends(first, count, ends);
}

// By descriptor: as many of the range's rows as `bytes_max` holds, at least one.
Status fetch_by_descriptor(FileState& file, const RowRange& range, std::size_t bytes_max, Fetched& out) {
  std::vector<std::uint64_t> ends(range.rows + 1);
  PIF_TRY(read_ends(file, range.lfs, range.row, range.rows, ends));
  std::uint64_t rows = 1;
  while (rows < range.rows && ends[rows + 1] - ends[0] <= bytes_max) ++rows;
  out.lengths.resize(rows);
  for (std::uint64_t i = 0; i < rows; ++i) {
    if (ends[i + 1] - ends[i] > kRecordLengthMax)
      return fail(Code::kCorrupt, fmt::format("{}: a row is too long", file.parts.path));
    out.lengths[i] = static_cast<std::uint32_t>(ends[i + 1] - ends[i]);
  }
  out.data.resize(ends[rows] - ends[0]);
  auto status = file.ports[range.lfs].reader->read_bytes(ends[0], out.data);
  if (!status && !file.creating()) {
    PIF_TRY(file.attach_again(range.lfs));
    status = file.ports[range.lfs].reader->read_bytes(ends[0], out.data);
  }
  file.counts.bytes_by_descriptor += out.data.size();
  return status;
}

Status take_rows(FileState& file, const RowRange& range, net::Packet& reply, Fetched& out) {
  const std::uint64_t rows = reply.envelope.read_reply().rows();
  const auto body = reply.body.span();
  const std::size_t lengths_bytes = rows * sizeof(std::uint32_t);
  const auto broken = [&] {
    return fail(Code::kCorrupt,
                fmt::format("{}: the reply for rows from {} does not add up", file.parts.path, range.row),
                file.parts.nodes[range.lfs].name());
  };
  if (rows == 0 || rows > range.rows || body.size() < lengths_bytes) return broken();
  out.lengths.resize(rows);
  std::memcpy(out.lengths.data(), body.data(), lengths_bytes);
  std::uint64_t total = 0;
  for (const std::uint32_t length : out.lengths) total += length;
  if (total != body.size() - lengths_bytes) return broken();
  out.data.assign(body.begin() + static_cast<std::ptrdiff_t>(lengths_bytes), body.end());
  file.counts.bytes_by_message += out.data.size();
  return {};
}

void fetch_by_message(FileState& file, const RowRange& range, Requests& requests, Fetched& out) {
  BulkRequest request;
  request.lfs = range.lfs;
  request.bytes = kBulkBytes;
  request.make = [&file, range] {
    net::Packet packet;
    proto::Read& read = *packet.envelope.mutable_read();
    read.set_file(file.parts.file.value);
    read.set_first(range.row);
    read.set_count(range.rows);
    return packet;
  };
  request.take = [&file, range, &out](net::Packet& reply) { return take_rows(file, range, reply, out); };
  requests.add(std::move(request));
}

// A read by descriptor has failed. What the LFS has just said of the tail may be old already when it is used, if
// somebody goes on overwriting or appending: in the end the LFS, which orders its own changes, is asked.
Status recover_rows(FileState& file, const RowRange& range, const Error& error, Requests& requests, Fetched& out) {
  if (file.creating() || (error.code != Code::kCorrupt && error.code != Code::kEndOfFile)) return fail(error);
  out = {};
  out.first = range.row;
  fetch_by_message(file, range, requests, out);
  return {};
}

// Moves records from what the LFSs sent into the batch, in their order, as far as all are there and `bytes_max` allows.
void merge(const parity::Layout& layout, Range records, std::size_t bytes_max, std::vector<Fetched>& fetched,
           RecordBatch& batch) {
  for (RecordNumber n = records.begin; n < records.end; ++n) {
    const Cell cell = layout.locate(n);
    Fetched& from = fetched[cell.lfs];
    const std::uint64_t index = cell.row - from.first;
    if (index >= from.lengths.size()) return;
    const std::uint32_t length = from.lengths[index];
    if (!batch.lengths.empty() && batch.data.size() + length > bytes_max) return;
    batch.lengths.push_back(length);
    const auto begin = from.data.begin() + static_cast<std::ptrdiff_t>(from.offset);
    batch.data.insert(batch.data.end(), begin, begin + length);
    from.offset += length;
  }
}

// How many records to ask for, so that about `bytes_max` come.
std::uint64_t records_worth(const FileLength& file_length, std::uint64_t count, std::size_t bytes_max,
                            std::uint32_t width) {
  const std::uint64_t average = file_length.records == 0 ? 1 : file_length.bytes / file_length.records + 1;
  const std::uint64_t wanted = bytes_max / average + bytes_max / average / 8 + width;
  return std::min({count, wanted, kRowsAtOnce * width});
}

Status cannot_read_back(const FileState& file, LfsIndex lfs) {
  return fail(
      Code::kUnsupported,
      fmt::format("{}: what was sent by message cannot be read back before the file is committed", file.parts.path),
      file.parts.nodes[lfs].name());
}

Status fetch(FileState& file, Range records, std::size_t bytes_max, std::vector<Fetched>& fetched) {
  std::vector<RowRange> ranges;
  split(file.parts.layout, records, ranges);
  Requests requests(file);
  for (const RowRange& range : ranges) {
    fetched[range.lfs].first = range.row;
    PIF_TRY(file.creating() ? file.make_readable(range.lfs) : file.open_reader(range.lfs));
    if (file.ports[range.lfs].way != Port::Way::kMessages) continue;
    if (file.creating()) return cannot_read_back(file, range.lfs);
    fetch_by_message(file, range, requests, fetched[range.lfs]);
  }
  PIF_TRY(requests.step());
  const std::size_t each = bytes_max / ranges.size() + bytes_max / ranges.size() / 4 + 1;
  for (const RowRange& range : ranges) {
    if (file.ports[range.lfs].way == Port::Way::kMessages) continue;
    const auto fetched_here = fetch_by_descriptor(file, range, each, fetched[range.lfs]);
    if (!fetched_here) PIF_TRY(recover_rows(file, range, fetched_here.error(), requests, fetched[range.lfs]));
  }
  return requests.run();
}

Status past_end(const FileState& file, RecordNumber record) {
  return fail(Code::kEndOfFile, fmt::format("{}: record {} is past the end, which is at {}", file.parts.path, record,
                                            file.file_length.records));
}

}  // namespace

Result<RecordBatch> FileState::read_batch(RecordNumber first, std::uint64_t count, std::size_t bytes_max) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  if (parts.format.is_fixed())
    return fail(Code::kInvalid, fmt::format("{}: its records have a fixed length: use read", parts.path));
  PIF_TRY_VALUE(const FileLength now, length_for(count > UINT64_MAX - first ? UINT64_MAX : first + count));
  if (first > now.records) return fail(past_end(*this, first).error());
  const std::uint64_t wanted = std::min(count, now.records - first);
  RecordBatch batch;
  std::vector<Fetched> fetched(width());
  while (batch.lengths.size() < wanted && (batch.lengths.empty() || batch.data.size() < bytes_max)) {
    const std::uint64_t done = batch.lengths.size();
    const std::size_t room = std::max<std::size_t>(bytes_max - std::min(bytes_max, batch.data.size()), 1);
    const std::uint64_t some = records_worth(now, wanted - done, room, width());
    for (Fetched& one : fetched) one = {};
    PIF_TRY(fetch(*this, {first + done, first + done + some}, room, fetched));
    merge(parts.layout, {first + done, first + done + some}, bytes_max, fetched, batch);
    if (batch.lengths.size() == done) break;  // the next record does not fit
  }
  return batch;
}

Status FileState::check_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) const {
  if (parts.format.is_fixed())
    return fail(Code::kInvalid, fmt::format("{}: its records have a fixed length: use write", parts.path));
  std::uint64_t total = 0;
  const bool delimited = parts.format.kind == RecordKind::kDelimited;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > kRecordLengthMax) {
      return fail(Code::kTooLarge, fmt::format("{}: record {} of the batch has {} bytes, more than {}", parts.path, i,
                                               lengths[i], kRecordLengthMax));
    }
    total += lengths[i];
    if (!delimited || total > data.size()) continue;
    const bool ends = lengths[i] > 0 && data[total - 1] == std::byte{parts.format.delimiter};
    if (!ends && i + 1 < lengths.size()) {
      return fail(Code::kInvalid, fmt::format("{}: record {} of the batch lacks its delimiter", parts.path, i));
    }
  }
  if (total == data.size()) return {};
  return fail(Code::kInvalid,
              fmt::format("{}: the lengths add up to {} bytes, {} are given", parts.path, total, data.size()));
}

// ---- writing --------------------------------------------------------------------------------------------------------

namespace {

// What is gathered goes out: into the component, or as a message.
Status put_out(FileState& file, LfsIndex lfs) {
  Port& port = file.ports[lfs];
  if (!port.writer) return file.flush_stage(lfs);
  auto status = port.writer->append_rows(port.stage.lengths, port.stage.data);
  if (!status) {
    status.error().node = file.parts.nodes[lfs].name();
    return status;
  }
  port.unfinished = true;
  file.counts.bytes_by_descriptor += port.stage.data.size();
  port.stage.rows = 0;
  port.stage.lengths.clear();
  port.stage.data.clear();
  return {};
}

Status stage_row(FileState& file, LfsIndex lfs, std::span<const std::byte> row) {
  Port& port = file.ports[lfs];
  Stage& stage = port.stage;
  const std::size_t limit = std::min<std::size_t>(stage_limit(file), port.writer ? kDescriptorStage : kBulkBytes);
  const std::size_t size = stage.data.size() + stage.lengths.size() * sizeof(std::uint32_t);
  if (stage.rows > 0 && size + row.size() + sizeof(std::uint32_t) > limit) PIF_TRY(put_out(file, lfs));
  if (stage.rows == 0) stage.first = port.rows;
  stage.lengths.push_back(static_cast<std::uint32_t>(row.size()));
  stage.data.insert(stage.data.end(), row.begin(), row.end());
  ++stage.rows;
  ++port.rows;
  port.bytes += row.size();
  return {};
}

}  // namespace

Status FileState::flush_stage(LfsIndex lfs) {
  Port& port = ports[lfs];
  if (port.stage.rows == 0) return {};
  return port.writer ? put_out(*this, lfs) : send_stage(lfs);
}

Status FileState::write_created_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  const bool delimited = parts.format.kind == RecordKind::kDelimited;
  if (delimited && unterminated) {
    return fail(Code::kInvalid,
                fmt::format("{}: the last record lacks its delimiter, so that none can follow it", parts.path));
  }
  RecordNumber n = file_length.records;
  std::size_t offset = 0;
  for (const std::uint32_t length : lengths) {
    const Cell cell = parts.layout.locate(n);
    Port& port = ports[cell.lfs];
    if (port.way == Port::Way::kUnknown) PIF_TRY(open_writer(cell.lfs));
    while (port.rows < cell.row) PIF_TRY(stage_row(*this, cell.lfs, {}));  // parity cells are rows without bytes
    PIF_TRY(stage_row(*this, cell.lfs, data.subspan(offset, length)));
    offset += length;
    ++n;
    file_length.records = n;
    file_length.bytes += length;
  }
  unterminated =
      delimited && !lengths.empty() && (lengths.back() == 0 || data.back() != std::byte{parts.format.delimiter});
  return {};
}

Status FileState::write_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                              std::span<const std::byte> data) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  PIF_TRY(check_batch(lengths, data));
  if (creating()) {
    if (first == file_length.records) return write_created_batch(lengths, data);
    if (first > file_length.records) return past_end(*this, first);
    return fail(
        Code::kUnsupported,
        fmt::format("{}: records of variable length are written in order while the file is created", parts.path));
  }
  PIF_TRY(check_may_write());
  PIF_TRY_VALUE(const FileLength now, length_for(first + lengths.size()));
  if (first > now.records) return past_end(*this, first);
  if (first + lengths.size() <= now.records) return lengths.empty() ? Status() : overwrite_batch(first, lengths, data);
  if (first == now.records) {
    PIF_TRY(append(lengths, data, false, &now.bytes));
    return {};
  }
  return fail(Code::kInvalid, fmt::format("{}: records {} to {} are partly inside the file and partly past its end",
                                          parts.path, first, first + lengths.size()));
}

// ---- byte offsets
// -----------------------------------------------------------------------------------------------------

namespace {

// ends[i] += the start of row rows[i] in the component of `lfs`.
Status add_offsets_by_descriptor(FileState& file, LfsIndex lfs, std::span<const Row> rows,
                                 std::vector<std::uint64_t>& sums) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::uint64_t end = 0;
    PIF_TRY(read_ends(file, lfs, rows[i], 0, std::span(&end, 1)));
    sums[i] += end;
  }
  return {};
}

BulkRequest offsets_request(FileState& file, LfsIndex lfs, std::vector<Row> rows, std::vector<std::uint64_t>& sums) {
  BulkRequest request;
  request.lfs = lfs;
  request.bytes = rows.size() * sizeof(std::uint64_t);
  request.make = [&file, rows] {
    net::Packet packet;
    proto::Offsets& offsets = *packet.envelope.mutable_offsets();
    offsets.set_file(file.parts.file.value);
    for (const Row row : rows) offsets.add_rows(row);
    return packet;
  };
  request.take = [&file, lfs, count = rows.size(), &sums](net::Packet& reply) -> Status {
    if (reply.body.size() != count * sizeof(std::uint64_t)) {
      return fail(Code::kCorrupt,
                  fmt::format("{}: {} bytes of offsets for {} rows", file.parts.path, reply.body.size(), count),
                  file.parts.nodes[lfs].name());
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t end = 0;
      std::memcpy(&end, reply.body.data() + i * sizeof end, sizeof end);
      sums[i] += end;
    }
    return {};
  };
  return request;
}

}  // namespace

Result<std::vector<std::uint64_t>> FileState::byte_offsets(std::span<const RecordNumber> records) {
  std::vector<std::uint64_t> sums(records.size(), 0);
  Requests requests(*this);
  for (LfsIndex lfs = 0; lfs < width(); ++lfs) {
    std::vector<Row> rows;
    for (const RecordNumber n : records) rows.push_back(parts.layout.rows(lfs, n));
    if (std::all_of(rows.begin(), rows.end(), [](Row row) { return row == 0; }))
      continue;  // perhaps no component at all
    PIF_TRY(creating() ? make_readable(lfs) : open_reader(lfs));
    if (ports[lfs].way == Port::Way::kMessages) {
      if (creating()) return fail(cannot_read_back(*this, lfs).error());
      requests.add(offsets_request(*this, lfs, std::move(rows), sums));
    } else {
      PIF_TRY(add_offsets_by_descriptor(*this, lfs, rows, sums));
    }
  }
  PIF_TRY(requests.run());
  return sums;
}

}  // namespace pif::client
