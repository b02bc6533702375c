#include "pif/access/checked_read.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/access/rebuilt_read.h"
#include "pif/access/row_body.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::access {

namespace {

constexpr int kCorruptReadsAgain = 2;

std::byte* place_of(const ReadPart& part, RecordNumber record, std::size_t length) {
  PIF_ASSERT(record >= part.origin, record, part.origin);
  return part.out + (record - part.origin) * length;
}

// Bytes of `rows` that a file of this length has: all but what a short last record lacks.
std::size_t bytes_of(const FileParts& parts, const FileLength& file_length, const RowRange& rows) {
  const std::uint32_t length = parts.format.record_length;
  std::size_t bytes = rows.rows * length;
  if (file_length.records == 0) return bytes;
  const RecordNumber last = file_length.records - 1;
  const Cell cell = parts.layout.locate(last);
  if (cell.lfs == rows.lfs && cell.row == rows.row + rows.rows - 1) {
    bytes -= length - fixed_record_bytes(length, file_length, last);
  }
  return bytes;
}

bool may_be_old(const Error& error) { return error.code == Code::kCorrupt || error.code == Code::kEndOfFile; }

net::Packet read_packet(FileId file, const RowRange& rows) {
  net::Packet packet;
  proto::Read& read = *packet.envelope.mutable_read();
  read.set_file(file.value);
  read.set_first(rows.row);
  read.set_count(rows.rows);
  return packet;
}

// A last record that is short here may be longer at its LFS by now: of it no more is read than there is room for.
Status read_even(const FileParts& parts, const ReadPart& part, std::size_t bytes, const component::Reader& reader) {
  const RowRange& rows = part.rows;
  PIF_ASSERT(rows.even, rows.lfs, rows.row);
  const std::size_t length = parts.format.record_length;
  const std::uint64_t whole = bytes / length;
  const std::size_t stride = length * parts.layout.width();
  if (whole > 0) PIF_TRY(reader.read_rows(rows.row, whole, {place_of(part, rows.record, length), stride}));
  if (whole == rows.rows) return {};
  PIF_ASSERT(whole + 1 == rows.rows, whole, rows.rows, bytes);
  std::byte* const last = place_of(part, record_of(parts.layout, rows, whole), length);
  return reader.read_bytes((rows.row + whole) * length, {last, bytes - whole * length});
}

}  // namespace

// ---- fixed records -------------------------------------------------------------------------------------------------

void scatter(const FileParts& parts, const ReadPart& part, const RowRange& rows, std::span<const std::byte> packed) {
  const std::size_t length = parts.format.record_length;
  for (std::uint64_t i = 0; i < rows.rows && i * length < packed.size(); ++i) {
    const RecordNumber record = record_of(parts.layout, rows, i);
    const std::size_t size = std::min(length, packed.size() - i * length);
    std::memcpy(place_of(part, record, length), packed.data() + i * length, size);
  }
}

Status read_direct(const FileParts& parts, const ComponentAccess& component, const ReadPart& part) {
  PIF_ASSERT(component.has_reader() && component.lfs() == part.rows.lfs, component.lfs(), part.rows.lfs);
  const std::size_t length = parts.format.record_length;
  const component::Reader& reader = component.reader();
  const std::size_t bytes = bytes_of(parts, part.file_length, part.rows);
  if (const std::uint64_t end = part.rows.row * length + bytes; reader.tail().bytes < end) {
    return fail(Code::kEndOfFile, fmt::format("{}: the component was attached when it had {} bytes, not {}", parts.path,
                                              reader.tail().bytes, end));
  }
  if (part.rows.even) return read_even(parts, part, bytes, reader);
  // Distances of records vary: read packed, then put each in its place.
  const std::uint64_t rows_at_once = rows_per_message(parts.format.record_length);
  std::vector<std::byte> packed(std::min(rows_at_once, part.rows.rows) * length);
  for (const RowRange& piece : pieces_of(parts.layout, part.rows, rows_at_once)) {
    PIF_TRY(reader.read_rows(piece.row, piece.rows, {packed.data(), length}));
    scatter(parts, part, piece, std::span(packed).first(bytes_of(parts, part.file_length, piece)));
  }
  return {};
}

namespace {

// Of a last record that was made longer without it an LFS has less, until it hears that it was away.
bool is_behind(const FileParts& parts, const ReadPart& part, const RowRange& got, std::size_t bytes) {
  if (!can_be_rebuilt(parts) || !parts.format.is_fixed()) return false;
  const std::size_t length = parts.format.record_length;
  return bytes < bytes_of(parts, part.file_length, got) && bytes > (got.rows - 1) * length;
}

// One request for rows of `piece`; asks again for what did not fit the reply.
void ask_for_rows(Requests& requests, const ReadPart& part, const RowRange& piece, std::uint64_t& moved) {
  const FileParts& parts = requests.grant().parts();
  const std::uint64_t length = parts.format.record_length;
  PIF_ASSERT(piece.rows > 0 && length > 0, piece.rows, length);
  BulkRequest request;
  request.lfs = piece.lfs;
  request.bytes = piece.rows * length;
  request.patient = true;
  request.replaceable = can_be_rebuilt(parts);
  request.refused = [&requests, &moved, part, piece](Error error) -> Status {
    if (!can_rebuild(requests.grant().parts(), error)) return fail(std::move(error));
    ReadPart rest = part;
    rest.rows = piece;
    read_rebuilt(requests, rest, moved, error);
    return {};
  };
  request.make = [id = parts.file, piece] { return read_packet(id, piece); };
  request.take = [&requests, &parts, &moved, part, piece, length](net::Packet& reply) -> Status {
    const std::uint64_t rows = reply.envelope.read_reply().rows();
    const bool possible = rows > 0 && rows <= piece.rows;
    if (possible && is_behind(parts, part, part_of(parts.layout, piece, 0, rows), reply.body.size())) {
      ReadPart rest = part;
      rest.rows = piece;
      read_rebuilt(requests, rest, moved,
                   {Code::kEndOfFile, "it has less of the last record", parts.nodes[piece.lfs].name()});
      return {};
    }
    const RowRange got = possible ? part_of(parts.layout, piece, 0, rows) : piece;
    const std::size_t bytes =
        bytes_of(parts, part.file_length, got);  // more comes of a last record that somebody fills up meanwhile
    if (!possible || reply.body.size() < bytes || reply.body.size() > rows * length) {
      return fail(Code::kCorrupt,
                  fmt::format("{}: asked for rows {} to {}, got {} rows in {} bytes", parts.path, piece.row,
                              piece.row + piece.rows, rows, reply.body.size()),
                  parts.nodes[piece.lfs].name());
    }
    scatter(parts, part, got, reply.body.span().first(bytes));
    moved += bytes;
    if (rows < piece.rows) ask_for_rows(requests, part, part_of(parts.layout, piece, rows, piece.rows - rows), moved);
    return {};
  };
  requests.add(std::move(request));
}

}  // namespace

void read_by_message(Requests& requests, const ReadPart& part, std::uint64_t& moved) {
  const FileParts& parts = requests.grant().parts();
  for (const RowRange& piece : pieces_of(parts.layout, part.rows, rows_per_message(parts.format.record_length)))
    ask_for_rows(requests, part, piece, moved);
}

Status note_silent_disk(Requests& requests, LfsIndex lfs, const Error& error) {
  const FileParts& parts = requests.grant().parts();
  PIF_ASSERT(lfs < parts.nodes.size(), lfs, parts.nodes.size());
  if (error.code != Code::kTimeout) return {};
  const proto::NodeInfo& node = parts.nodes[lfs];
  if (!can_be_rebuilt(parts)) return fail(error.code, fmt::format("{}: {}", parts.path, error.text), node.name());
  requests.links().note_away(node.id());
  return {};
}

Status recover(Requests& requests, ComponentAccess& component, const ReadPart& part, std::uint64_t& moved,
               Error error) {
  const FileParts& parts = requests.grant().parts();
  // The disk fails: the LFS may have it in memory, and its answer decides who is asked next.
  if (!may_be_old(error)) {
    if (parts.creating) return fail(std::move(error));
    PIF_TRY(note_silent_disk(requests, part.rows.lfs, error));
    read_by_message(requests, part, moved);
    return {};
  }
  for (int i = 0; i < kCorruptReadsAgain && error.code == Code::kCorrupt; ++i) {
    if (read_direct(parts, component, part)) return {};
  }
  if (parts.creating) {
    read_by_message(requests, part, moved);
    return {};
  }
  component.attach_again(requests, [&requests, &component, &parts, &moved, part]() -> Status {
    if (component.has_reader() && read_direct(parts, component, part)) return {};
    read_by_message(requests, part, moved);
    return {};
  });
  return {};
}

// ---- variable records ----------------------------------------------------------------------------------------------

Status read_rows_direct(const FileParts& parts, const ComponentAccess& component, const RowRange& rows,
                        std::size_t bytes_max, FetchedRows& out) {
  PIF_ASSERT(component.has_reader() && rows.rows > 0, component.lfs(), rows.rows);
  std::vector<std::uint64_t> ends(rows.rows + 1);
  PIF_TRY(component.reader().read_ends(rows.row, rows.rows, ends));
  std::uint64_t count = 1;
  while (count < rows.rows && ends[count + 1] - ends[0] <= bytes_max) ++count;
  out.first = rows.row;
  out.lengths.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (ends[i + 1] - ends[i] > kRecordLengthMax)
      return fail(Code::kCorrupt, fmt::format("{}: a row is too long", parts.path));
    out.lengths[i] = static_cast<std::uint32_t>(ends[i + 1] - ends[i]);
  }
  out.data.resize(ends[count] - ends[0]);
  return component.reader().read_bytes(ends[0], out.data);
}

namespace {

Status take_rows(const FileParts& parts, const RowRange& rows, net::Packet& reply, FetchedRows& out,
                 std::uint64_t& moved) {
  const std::uint64_t count = reply.envelope.read_reply().rows();
  const auto body = reply.body.span();
  const auto broken = [&] {
    return fail(Code::kCorrupt, fmt::format("{}: the reply for rows from {} does not add up", parts.path, rows.row),
                parts.nodes[rows.lfs].name());
  };
  if (count == 0 || count > rows.rows || body.size() / sizeof(std::uint32_t) < count) return broken();
  const std::size_t lengths_bytes = count * sizeof(std::uint32_t);
  out.lengths.resize(count);
  std::memcpy(out.lengths.data(), body.data(), lengths_bytes);
  std::uint64_t total = 0;
  for (const std::uint32_t length : out.lengths) total += length;
  if (total != body.size() - lengths_bytes) return broken();
  out.data.assign(body.begin() + static_cast<std::ptrdiff_t>(lengths_bytes), body.end());
  moved += out.data.size();
  return {};
}

}  // namespace

void read_rows_by_message(Requests& requests, const RowRange& rows, FetchedRows& out, std::uint64_t& moved) {
  const FileParts& parts = requests.grant().parts();
  out = {};
  out.first = rows.row;
  BulkRequest request;
  request.lfs = rows.lfs;
  request.bytes = kBulkBytes;
  request.replaceable = can_be_rebuilt(parts);
  request.refused = [&requests, &parts, rows, &out, &moved](Error error) -> Status {
    if (!can_rebuild(parts, error)) return fail(std::move(error));
    read_rows_rebuilt(requests, rows, out, moved, error);
    return {};
  };
  request.make = [id = parts.file, rows] { return read_packet(id, rows); };
  request.take = [&parts, rows, &out, &moved](net::Packet& reply) { return take_rows(parts, rows, reply, out, moved); };
  requests.add(std::move(request));
}

// What the LFS has just said of the tail may be old already when it is used, if somebody goes on overwriting or
// appending: in the end the LFS, which orders its own changes, is asked.
Status recover_rows(Requests& requests, ComponentAccess& component, const RowRange& rows, std::size_t bytes_max,
                    FetchedRows& out, std::uint64_t& moved, const Error& error) {
  const FileParts& parts = requests.grant().parts();
  if (parts.creating) return fail(error);
  if (!may_be_old(error)) {
    PIF_TRY(note_silent_disk(requests, rows.lfs, error));
    read_rows_by_message(requests, rows, out, moved);
    return {};
  }
  component.attach_again(requests, [&requests, &component, &parts, rows, bytes_max, &out, &moved]() -> Status {
    if (component.has_reader() && read_rows_direct(parts, component, rows, bytes_max, out)) return {};
    read_rows_by_message(requests, rows, out, moved);
    return {};
  });
  return {};
}

// ---- offsets -------------------------------------------------------------------------------------------------------

namespace {

Status offsets_direct(const ComponentAccess& component, std::span<const Row> rows, std::span<std::uint64_t> out) {
  PIF_ASSERT(rows.size() == out.size(), rows.size(), out.size());
  for (std::size_t i = 0; i < rows.size(); ++i) PIF_TRY(component.reader().read_ends(rows[i], 0, out.subspan(i, 1)));
  return {};
}

// Whether it could; if not, the LFS is asked, unless its disk is silent and nobody else can answer.
Result<bool> add_direct(Requests& requests, const ComponentAccess& component, std::span<const Row> rows,
                        std::vector<std::uint64_t>& sums) {
  std::vector<std::uint64_t> found(rows.size());
  if (!component.has_reader()) return false;
  if (auto read = offsets_direct(component, rows, found); !read) {
    PIF_TRY(note_silent_disk(requests, component.lfs(), read.error()));
    return false;
  }
  for (std::size_t i = 0; i < found.size(); ++i) sums[i] += found[i];
  return true;
}

void offsets_by_message(Requests& requests, LfsIndex lfs, std::vector<Row> rows, std::vector<std::uint64_t>& sums,
                        std::optional<Error>& away) {
  const FileParts& parts = requests.grant().parts();
  BulkRequest request;
  request.lfs = lfs;
  request.bytes = rows.size() * sizeof(std::uint64_t);
  request.replaceable = can_be_rebuilt(parts);
  request.refused = [&parts, &away](Error error) -> Status {
    if (!can_rebuild(parts, error)) return fail(std::move(error));
    away = std::move(error);
    return {};
  };
  request.take = [&parts, lfs, count = rows.size(), &sums](net::Packet& reply) -> Status {
    if (reply.body.size() != count * sizeof(std::uint64_t)) {
      return fail(Code::kCorrupt,
                  fmt::format("{}: {} bytes of offsets for {} rows", parts.path, reply.body.size(), count),
                  parts.nodes[lfs].name());
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t end = 0;
      std::memcpy(&end, reply.body.data() + i * sizeof end, sizeof end);
      sums[i] += end;
    }
    return {};
  };
  request.make = [id = parts.file, rows = std::move(rows)] {
    net::Packet packet;
    proto::Offsets& offsets = *packet.envelope.mutable_offsets();
    offsets.set_file(id.value);
    for (const Row row : rows) offsets.add_rows(row);
    return packet;
  };
  requests.add(std::move(request));
}

}  // namespace

Status add_offsets(Requests& requests, ComponentAccess& component, std::vector<Row> rows,
                   std::vector<std::uint64_t>& sums, std::optional<Error>& away) {
  PIF_ASSERT(rows.size() == sums.size(), rows.size(), sums.size());
  if (component.by_message()) {
    offsets_by_message(requests, component.lfs(), std::move(rows), sums, away);
    return {};
  }
  PIF_TRY_VALUE(const bool is_done, add_direct(requests, component, rows, sums));
  if (is_done) return {};
  component.attach_again(requests, [&requests, &component, rows = std::move(rows), &sums, &away]() -> Status {
    PIF_TRY_VALUE(const bool is_done_now, add_direct(requests, component, rows, sums));
    if (!is_done_now) offsets_by_message(requests, component.lfs(), rows, sums, away);
    return {};
  });
  return {};
}

}  // namespace pif::access
