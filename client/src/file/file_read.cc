// Reading fixed records.
#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/base/limits.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u
                                         << 10;  // below this, handing work to another thread costs more than it saves
constexpr std::uint32_t kLongRowBytes = 4096;    // from here on neighbours in memory do not disturb each other
constexpr int kCorruptReadsAgain = 2;

using ReadPart = FileState::ReadPart;

std::byte* place_of(const ReadPart& part, RecordNumber record, std::size_t length) {
  return part.out + (record - part.origin) * length;
}

// Packed rows of `range` (a piece of part's) to their places in the user's memory. A short last row is just shorter.
void scatter(const parity::Layout& layout, const ReadPart& part, const RowRange& range, std::size_t length,
             std::span<const std::byte> packed) {
  for (std::uint64_t i = 0; i < range.rows && i * length < packed.size(); ++i) {
    const auto record = record_of(layout, range, i);
    if (!record) continue;
    std::memcpy(place_of(part, *record, length), packed.data() + i * length,
                std::min(length, packed.size() - i * length));
  }
}

}  // namespace

// ---- by descriptor --------------------------------------------------------------------------------------------------

namespace {

// Bytes of rows [row, row + rows) that a file of this length has: all but what a short last record lacks.
std::size_t bytes_of(const FileState& file, const FileLength& file_length, const RowRange& range) {
  const std::uint32_t length = file.parts.format.record_length;
  std::size_t bytes = range.rows * length;
  if (file_length.records == 0) return bytes;
  const RecordNumber last = file_length.records - 1;
  const Cell cell = file.parts.layout.locate(last);
  if (cell.lfs == range.lfs && cell.row == range.row + range.rows - 1) {
    bytes -= length - fixed_record_bytes(length, file_length, last);
  }
  return bytes;
}

}  // namespace

// A last record that is short here may be longer at its LFS by now: of it no more is read than there is room for.
Status FileState::read_even(const ReadPart& part, std::size_t bytes, const component::Reader& reader) const {
  const RowRange& range = part.range;
  const std::size_t length = parts.format.record_length;
  const std::uint64_t whole = bytes / length;
  if (whole > 0) PIF_TRY(reader.read_rows(range.row, whole, {place_of(part, range.record, length), length * width()}));
  if (whole == range.rows) return {};
  std::byte* const last = place_of(part, *record_of(parts.layout, range, whole), length);
  return reader.read_bytes((range.row + whole) * length, {last, bytes - whole * length});
}

Status FileState::read_direct(const ReadPart& part) const {
  const std::size_t length = parts.format.record_length;
  const component::Reader& reader = *ports[part.range.lfs].reader;
  const std::size_t bytes = bytes_of(*this, part.file_length, part.range);
  if (const std::uint64_t end = part.range.row * length + bytes; reader.tail().bytes < end) {
    return fail(Code::kEndOfFile, fmt::format("{}: the component was attached when it had {} bytes, not {}", parts.path,
                                              reader.tail().bytes, end));
  }
  if (part.range.even) return read_even(part, bytes, reader);
  // Parity cells are among the rows: read packed, then take the records.
  const std::uint64_t rows_at_once = std::max<std::uint64_t>(1, kBulkBytes / length);
  std::vector<std::byte> packed(std::min(rows_at_once, part.range.rows) * length);
  for (std::uint64_t done = 0; done < part.range.rows; done += rows_at_once) {
    const RowRange piece = part_of(parts.layout, part.range, done, std::min(rows_at_once, part.range.rows - done));
    PIF_TRY(reader.read_rows(piece.row, piece.rows, {packed.data(), length}));
    scatter(parts.layout, part, piece, length, std::span(packed).first(bytes_of(*this, part.file_length, piece)));
  }
  return {};
}

namespace {

// One request for rows of `piece`; asks again for what did not fit the reply.
void ask_for_rows(FileState& file, const ReadPart& part, const RowRange& piece, Requests& requests) {
  const std::uint64_t length = file.parts.format.record_length;
  BulkRequest request;
  request.lfs = piece.lfs;
  request.bytes = piece.rows * length;
  request.patient = true;
  request.make = [&file, piece] {
    net::Packet packet;
    proto::Read& read = *packet.envelope.mutable_read();
    read.set_file(file.parts.file.value);
    read.set_first(piece.row);
    read.set_count(piece.rows);
    return packet;
  };
  request.take = [&file, &requests, part, piece, length](net::Packet& reply) -> Status {
    const std::uint64_t rows = reply.envelope.read_reply().rows();
    const bool possible = rows > 0 && rows <= piece.rows;
    const RowRange got = possible ? part_of(file.parts.layout, piece, 0, rows) : piece;
    const std::size_t bytes =
        bytes_of(file, part.file_length, got);  // more comes of a last record that somebody fills up meanwhile
    if (!possible || reply.body.size() < bytes || reply.body.size() > rows * length) {
      return fail(Code::kCorrupt,
                  fmt::format("{}: asked for rows {} to {}, got {} rows in {} bytes", file.parts.path, piece.row,
                              piece.row + piece.rows, rows, reply.body.size()),
                  file.parts.nodes[piece.lfs].name());
    }
    scatter(file.parts.layout, part, got, length, reply.body.span().first(bytes));
    file.counts.bytes_by_message += bytes;
    if (rows < piece.rows)
      ask_for_rows(file, part, part_of(file.parts.layout, piece, rows, piece.rows - rows), requests);
    return {};
  };
  requests.add(std::move(request));
}

void read_by_message(FileState& file, const ReadPart& part, Requests& requests) {
  const std::uint64_t rows_at_once = std::max<std::uint64_t>(1, kBulkBytes / file.parts.format.record_length);
  for (std::uint64_t done = 0; done < part.range.rows; done += rows_at_once) {
    const std::uint64_t rows = std::min(rows_at_once, part.range.rows - done);
    ask_for_rows(file, part, part_of(file.parts.layout, part.range, done, rows), requests);
  }
}

// A read by descriptor has failed. The component may have grown, or somebody overwrote the chunk between our reads of
// data and sum: try again, with a new tail, and in the end believe the LFS.
Status recover(FileState& file, const ReadPart& part, Error error) {
  if (error.code != Code::kCorrupt && error.code != Code::kEndOfFile) return fail(std::move(error));
  for (int i = 0; i < kCorruptReadsAgain && error.code == Code::kCorrupt; ++i) {
    if (file.read_direct(part)) return {};
  }
  if (!file.creating()) {
    PIF_TRY(file.attach_again(part.range.lfs));
    if (file.ports[part.range.lfs].reader && file.read_direct(part)) return {};
  }
  Requests requests(file);
  read_by_message(file, part, requests);
  return requests.run();
}

Status read_all_direct(FileState& file, std::span<const ReadPart> parts, std::uint64_t bytes) {
  if (parts.size() == 1) {
    auto status = file.read_direct(parts[0]);
    return status ? status : recover(file, parts[0], std::move(status.error()));
  }
  std::vector<Status> outcome(parts.size());
  std::vector<std::size_t> turns;  // where each begins
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 0 || parts[i].turn != parts[i - 1].turn) turns.push_back(i);
  }
  turns.push_back(parts.size());
  const auto take_turn = [&](std::size_t turn) {
    for (std::size_t i = turns[turn]; i < turns[turn + 1]; ++i) outcome[i] = file.read_direct(parts[i]);
  };
  if (bytes >= kParallelBytes) {
    file.session->pool().run(turns.size() - 1, take_turn);
  } else {
    for (std::size_t turn = 0; turn + 1 < turns.size(); ++turn) take_turn(turn);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!outcome[i]) PIF_TRY(recover(file, parts[i], std::move(outcome[i].error())));
  }
  return {};
}

}  // namespace

Status FileState::read_staged(const ReadPart& part) const {
  const std::size_t length = parts.format.record_length;
  const Stage& stage = ports[part.range.lfs].stage;
  const Row end = part.range.row + part.range.rows;
  if (part.range.row < stage.first || end > stage.first + stage.rows) {
    return fail(
        Code::kUnsupported,
        fmt::format("{}: what was sent by message cannot be read back before the file is committed", parts.path),
        parts.nodes[part.range.lfs].name());
  }
  scatter(parts.layout, part, part.range, length,
          std::span(stage.data).subspan((part.range.row - stage.first) * length));
  return {};
}

Status FileState::read_parts(std::span<const ReadPart> parts_wanted, Requests* requests) {
  const std::uint64_t length = parts.format.record_length;
  Requests own(*this);
  Requests& messages = requests != nullptr ? *requests : own;
  std::vector<ReadPart> direct;
  std::uint64_t bytes = 0;
  for (const ReadPart& part : parts_wanted) {
    PIF_TRY(creating() ? make_readable(part.range.lfs) : open_reader(part.range.lfs));
    if (ports[part.range.lfs].way == Port::Way::kMessages) {
      if (creating()) {
        PIF_TRY(read_staged(part));
      } else {
        read_by_message(*this, part, messages);
      }
    } else {
      direct.push_back(part);
      bytes += part.range.rows * length;
    }
  }
  PIF_TRY(messages.step());  // under way while we copy
  if (!direct.empty()) PIF_TRY(read_all_direct(*this, direct, bytes));
  counts.bytes_by_descriptor += bytes;
  return requests != nullptr ? Status() : messages.run();
}

void FileState::add_parts(Range records, std::byte* out, std::vector<ReadPart>& parts_wanted) {
  const std::uint64_t length = parts.format.record_length;
  const bool by_lfs = length >= kLongRowBytes;
  std::uint64_t turn = parts_wanted.empty() ? 0 : parts_wanted.back().turn + 1;
  // Cuts fall between chunks where they can, so that no chunk is read twice.
  const std::uint64_t unit = width() * std::max<std::uint64_t>(1, component::chunk_bytes_for(parts.format) / length);
  const std::uint64_t turns = by_lfs || records.size() * length < kParallelBytes ? 1 : session->pool().threads();
  const std::uint64_t step = std::max(unit, (records.size() / turns + unit - 1) / unit * unit);
  for (RecordNumber begin = records.begin; begin < records.end;) {
    const RecordNumber end = turns == 1 ? records.end : std::min(records.end, (begin / unit * unit) + step);
    split(parts.layout, {begin, end}, ranges_);
    for (const RowRange& range : ranges_)
      parts_wanted.push_back({range, out, records.begin, file_length, by_lfs ? turn++ : turn});
    ++turn;
    begin = end;
  }
}

namespace {

struct Clipped {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

// What a file of this length has of `count` records from `first`, which is not past its end.
Clipped clip_to(const FileLength& file_length, std::uint32_t length, RecordNumber first, std::uint64_t count) {
  const std::uint64_t records = std::min(count, file_length.records - first);
  if (records == 0) return {};
  return {records, (records - 1) * length + fixed_record_bytes(length, file_length, first + records - 1)};
}

}  // namespace

Result<std::uint64_t> FileState::clip(RecordNumber first, std::size_t out_bytes, std::uint64_t count) {
  if (!parts.format.is_fixed()) {
    return fail(Code::kInvalid, fmt::format("{}: records of variable length are read in batches", parts.path));
  }
  const std::uint64_t wanted = count > UINT64_MAX - first ? UINT64_MAX : first + count;
  const std::optional<FileLength> known = file_length_known ? std::optional(file_length) : std::nullopt;
  PIF_TRY_VALUE(const FileLength now, length_for(wanted));
  if (first > now.records) {
    return fail(Code::kEndOfFile,
                fmt::format("{}: record {} is past the end, which is at {}", parts.path, first, now.records));
  }
  const std::uint32_t length = parts.format.record_length;
  const Clipped clipped = clip_to(now, length, first, count);
  if (clipped.bytes <= out_bytes) return clipped.records;
  if (known && first <= known->records) {  // the memory is for the length that the caller knows
    const Clipped before = clip_to(*known, length, first, count);
    if (before.bytes <= out_bytes) {
      file_length = *known;
      return before.records;
    }
  }
  return fail(Code::kInvalid, fmt::format("{}: {} bytes of memory for {} records of {} bytes", parts.path, out_bytes,
                                          clipped.records, length));
}

Result<std::uint64_t> FileState::read(RecordNumber first, std::span<std::byte> out, std::uint64_t count) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  PIF_TRY_VALUE(const std::uint64_t records, clip(first, out.size(), count));
  if (records > 0) PIF_TRY(read_known(first, out, records));
  return records;
}

Status FileState::read_known(RecordNumber first, std::span<std::byte> out, std::uint64_t records) {
  if (records == 1) {  // the fast path of single records: no allocation, no lock
    const Cell cell = parts.layout.locate(first);
    const Port& port = ports[cell.lfs];
    const std::size_t bytes = record_bytes(first);  // at its LFS it may be longer by now
    if (port.reader && !port.unfinished &&
        port.reader->read_bytes(cell.row * parts.format.record_length, out.first(bytes))) {
      counts.bytes_by_descriptor += bytes;
      return {};
    }
  }
  read_parts_.clear();
  add_parts({first, first + records}, out.data(), read_parts_);
  return read_parts(read_parts_, nullptr);
}

Status FileState::read_many(std::span<File::ReadRequest> requests) {
  PIF_TRY(check_usable());
  PIF_TRY(keep_rights());
  std::vector<ReadPart> all;
  for (File::ReadRequest& request : requests) {
    PIF_TRY_VALUE(request.done, clip(request.first, request.out.size(), request.count));
    add_parts({request.first, request.first + request.done}, request.out.data(), all);
  }
  return read_parts(all, nullptr);
}

}  // namespace pif::client
