#include "pif/access/rebuilt_read.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "pif/access/row_body.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::access {

namespace {

net::Packet reconstruct_packet(const FileParts& parts, LfsIndex lfs, const KeptRows& kept,
                               const FileLength& file_length) {
  net::Packet packet;
  proto::Reconstruct& asked = *packet.envelope.mutable_reconstruct();
  asked.set_file(parts.file.value);
  asked.set_index(lfs);
  asked.set_first(kept.first);
  asked.set_count((kept.count - 1) * kept.step + 1);
  *asked.mutable_file_length() = wire::proto_of(file_length);
  return packet;
}

// Neither the LFS nor the keeper of its parity.
Status both_away(const FileParts& parts, LfsIndex lfs, const KeptRows& kept, const Error& why, const Error& keeper) {
  const std::string& node = parts.nodes[lfs].name();
  const RecordNumber record = parts.layout.record_at({lfs, kept.first});
  return fail(Code::kUnavailable,
              fmt::format("{}: record {} is on {} ({}), and cannot be rebuilt: {}: {}", parts.path, record, node,
                          why.text, keeper.node.empty() ? parts.nodes[kept.keeper].name() : keeper.node, keeper.text),
              node);
}

// A keeper that is absent in the reader's view is not asked, even if it answers: it may not know that it is absent, and
// have frames of appends that were cancelled when others went on without it.
Result<bool> check_keeper(const FileParts& parts, LfsIndex lfs, const KeptRows& kept, const Error& why) {
  if (!parts.is_absent(kept.keeper)) return true;
  const proto::NodeInfo& node = parts.nodes[kept.keeper];
  const Error absent{Code::kUnavailable, fmt::format("it is {}", wire::view_state_name(node.view_state())),
                     node.name()};
  return fail(both_away(parts, lfs, kept, why, absent).error());
}

Status broken_reply(const FileParts& parts, const KeptRows& kept) {
  return fail(Code::kCorrupt,
              fmt::format("{}: the reply for rebuilt rows from {} does not add up", parts.path, kept.first),
              parts.nodes[kept.keeper].name());
}

KeptRows rest_of(const KeptRows& kept, std::uint64_t done) {
  PIF_ASSERT(done < kept.count, done, kept.count);
  return {kept.keeper, kept.first + done * kept.step, kept.count - done, kept.step};
}

// Bytes of record n in a file of this length.
std::uint32_t bytes_of(const FileParts& parts, const FileLength& file_length, RecordNumber n) {
  return fixed_record_bytes(parts.format.record_length, file_length, n);
}

struct FixedRead {
  ReadPart part;
  Error why;
};

void ask_fixed(Requests& requests, const std::shared_ptr<const FixedRead>& read, const KeptRows& kept,
               std::uint64_t& moved);

Status take_fixed(Requests& requests, const std::shared_ptr<const FixedRead>& read, const KeptRows& kept,
                  std::uint64_t& moved, net::Packet& reply) {
  const FileParts& parts = requests.grant().parts();
  const ReadPart& part = read->part;
  const std::size_t length = parts.format.record_length;
  const std::uint64_t rows = reply.envelope.read_reply().rows();
  std::span<const std::byte> body = reply.body.span();
  if (rows == 0 || rows > kept.count) return broken_reply(parts, kept);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const RecordNumber record = parts.layout.record_at({part.rows.lfs, kept.first + i * kept.step});
    const std::uint32_t bytes = bytes_of(parts, part.file_length, record);
    if (body.size() < bytes) return broken_reply(parts, kept);
    PIF_ASSERT(record >= part.origin, record, part.origin);
    std::memcpy(part.out + (record - part.origin) * length, body.data(), bytes);
    moved += bytes;
    body = body.subspan(bytes);
  }
  if (!body.empty()) return broken_reply(parts, kept);
  if (rows < kept.count) ask_fixed(requests, read, rest_of(kept, rows), moved);
  return {};
}

void ask_fixed(Requests& requests, const std::shared_ptr<const FixedRead>& read, const KeptRows& kept,
               std::uint64_t& moved) {
  const FileParts& parts = requests.grant().parts();
  const LfsIndex lfs = read->part.rows.lfs;
  BulkRequest request;
  request.lfs = kept.keeper;
  request.bytes = kept.count * parts.format.record_length;
  request.patient = true;
  request.admit = [&parts, read, lfs, kept](const Link&) { return check_keeper(parts, lfs, kept, read->why); };
  request.make = [&parts, read, lfs, kept] { return reconstruct_packet(parts, lfs, kept, read->part.file_length); };
  request.take = [&requests, read, kept, &moved](net::Packet& reply) {
    return take_fixed(requests, read, kept, moved, reply);
  };
  request.refused = [&parts, read, lfs, kept](Error error) { return both_away(parts, lfs, kept, read->why, error); };
  requests.add(std::move(request));
}

// ---- variable records ----

struct KeeperRows {
  KeptRows kept;
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
};
struct VariableRead {
  RowRange rows;
  Error why;
  std::vector<KeeperRows> keepers;
  std::size_t missing = 0;  // replies
};

// Rows in their order, as far as all keepers' replies go.
void join(VariableRead& read, FetchedRows& out) {
  std::vector<std::size_t> offsets(read.keepers.size(), 0);
  out = {};
  out.first = read.rows.row;
  for (std::uint64_t i = 0; i < read.rows.rows; ++i) {
    const std::size_t k = i % read.keepers.size();
    const KeeperRows& from = read.keepers[k];
    const std::uint64_t at = i / read.keepers.size();
    if (at >= from.lengths.size()) return;
    const std::uint32_t length = from.lengths[at];
    const auto begin = from.data.begin() + static_cast<std::ptrdiff_t>(offsets[k]);
    out.lengths.push_back(length);
    out.data.insert(out.data.end(), begin, begin + length);
    offsets[k] += length;
  }
}

Status take_variable(const FileParts& parts, KeeperRows& from, net::Packet& reply) {
  const std::uint64_t rows = reply.envelope.read_reply().rows();
  const std::span<const std::byte> body = reply.body.span();
  if (rows == 0 || rows > from.kept.count || body.size() / sizeof(std::uint32_t) < rows)
    return broken_reply(parts, from.kept);
  const std::size_t lengths_bytes = rows * sizeof(std::uint32_t);
  from.lengths.resize(rows);
  std::memcpy(from.lengths.data(), body.data(), lengths_bytes);
  std::uint64_t total = 0;
  for (const std::uint32_t length : from.lengths) total += length;
  if (total != body.size() - lengths_bytes) return broken_reply(parts, from.kept);
  from.data.assign(body.begin() + static_cast<std::ptrdiff_t>(lengths_bytes), body.end());
  return {};
}

}  // namespace

bool can_be_rebuilt(const FileParts& parts) {
  return !parts.creating && parts.layout.has_parity() && parts.file_layout.form() > 0;
}

bool can_rebuild(const FileParts& parts, const Error& error) {
  if (!can_be_rebuilt(parts)) return false;
  switch (error.code) {
    case Code::kUnavailable:
    case Code::kTimeout:
    case Code::kNotFound:
    case Code::kEndOfFile:  // an LFS that was away, and does not know yet of the rows that were appended without it
    case Code::kCorrupt:
    case Code::kIo:
    case Code::kReadOnly:
    case Code::kNoSpace:
    case Code::kInternal:
    case Code::kBusy:
    case Code::kStaleNode: return true;
    default: return false;
  }
}

std::vector<KeptRows> by_keeper(const parity::Layout& layout, const RowRange& rows) {
  PIF_ASSERT(layout.has_parity() && rows.rows > 0, rows.lfs, rows.rows);
  const LfsIndex first = layout.parity_of({rows.lfs, rows.row}).lfs;
  const std::uint64_t step = layout.members(first).lfs.size();
  std::vector<KeptRows> out;
  for (std::uint64_t i = 0; i < std::min(step, rows.rows); ++i) {
    const Row row = rows.row + i;
    out.push_back({layout.parity_of({rows.lfs, row}).lfs, row, (rows.rows - i - 1) / step + 1, step});
  }
  return out;
}

void read_rebuilt(Requests& requests, const ReadPart& part, std::uint64_t& moved, const Error& why) {
  const FileParts& parts = requests.grant().parts();
  const auto read = std::make_shared<const FixedRead>(FixedRead{part, why});
  const std::uint64_t rows_max = rows_per_message(parts.format.record_length);
  for (const KeptRows& kept : by_keeper(parts.layout, part.rows)) {
    for (std::uint64_t done = 0; done < kept.count; done += rows_max) {
      KeptRows piece = rest_of(kept, done);
      piece.count = std::min(piece.count, rows_max);
      ask_fixed(requests, read, piece, moved);
    }
  }
}

void read_rows_rebuilt(Requests& requests, const RowRange& rows, FetchedRows& out, std::uint64_t& moved,
                       const Error& why) {
  const FileParts& parts = requests.grant().parts();
  const auto read = std::make_shared<VariableRead>();
  read->rows = rows;
  read->why = why;
  for (const KeptRows& kept : by_keeper(parts.layout, rows)) read->keepers.push_back({kept, {}, {}});
  read->missing = read->keepers.size();
  // Who reads these rows knows that they are there; how many bytes the file has, nobody asks of variable records.
  const FileLength file_length{parts.layout.record_at({rows.lfs, rows.row + rows.rows - 1}) + 1, 0};
  for (KeeperRows& from : read->keepers) {
    BulkRequest request;
    request.lfs = from.kept.keeper;
    request.bytes = kBulkBytes;
    request.patient = true;
    request.admit = [&parts, read, lfs = rows.lfs, kept = from.kept](const Link&) {
      return check_keeper(parts, lfs, kept, read->why);
    };
    request.make = [&parts, lfs = rows.lfs, kept = from.kept, file_length] {
      return reconstruct_packet(parts, lfs, kept, file_length);
    };
    request.take = [&parts, read, &from, &out, &moved](net::Packet& reply) -> Status {
      PIF_TRY(take_variable(parts, from, reply));
      moved += from.data.size();
      if (--read->missing == 0) join(*read, out);
      return {};
    };
    request.refused = [&parts, read, lfs = rows.lfs, kept = from.kept](Error error) {
      return both_away(parts, lfs, kept, read->why, error);
    };
    requests.add(std::move(request));
  }
}

}  // namespace pif::access
