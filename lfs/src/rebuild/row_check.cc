#include "rebuild/row_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kVariableRows = 1024;  // of one request

}  // namespace

RowCheck::RowCheck(Keeping& keeping, access::Grant& grant, Rows rows)
    : keeping_(keeping), grant_(grant), rows_(std::move(rows)), first_other_(rows_.range.end) {
  const std::uint64_t n = rows_.keepers.size();
  PIF_ASSERT(n > 0 && rows_.files != nullptr && rows_.range.end <= rows_.reader.tail().rows, n, rows_.range.end);
  for (std::size_t i = 0; i < n; ++i) next_.push_back(rows_.range.begin + (i + n - rows_.range.begin % n) % n);
}

Result<Row> RowCheck::run() {
  for (std::vector<Piece> pieces = next_pieces(); !pieces.empty(); pieces = next_pieces()) {
    PIF_TRY(keeping_.peers.run(grant_, [&](access::Requests& requests) {
      for (Piece& piece : pieces) ask(requests, piece);
    }));
    PIF_TRY(keeping_.works.run([&]() -> Status {
      for (const Piece& piece : pieces) {
        PIF_ASSERT(piece.rows > 0 && piece.rows <= piece.wanted, piece.rows, piece.wanted);
        PIF_TRY_VALUE(const Row other, piece.hashes.empty() ? compare_rows(piece) : compare_hashes(piece));
        first_other_ = std::min(first_other_, other);
        next_[piece.stream] += piece.rows * next_.size();
      }
      return {};
    }));
  }
  return first_other_;
}

// One of each keeper that has more.
std::vector<RowCheck::Piece> RowCheck::next_pieces() const {
  const Format& format = rows_.keeper.format();
  const std::uint64_t at_once =
      format.is_fixed() ? std::max<std::uint64_t>(kBulkBytes / format.record_length, 1) : kVariableRows;
  std::vector<Piece> out;
  for (std::size_t i = 0; i < next_.size(); ++i) {
    if (!rows_.keepers[i] || next_[i] >= first_other_) continue;
    Piece& piece = out.emplace_back();
    piece.stream = i;
    piece.wanted = std::min((rows_.range.end - next_[i] - 1) / next_.size() + 1, at_once);
  }
  return out;
}

void RowCheck::ask(access::Requests& requests, Piece& piece) {
  const Format& format = rows_.keeper.format();
  access::BulkRequest request;
  request.lfs = *rows_.keepers[piece.stream];
  request.bytes = format.is_fixed() ? piece.wanted * format.record_length : kBulkBytes;
  request.patient = true;
  request.make = [this, &piece] {
    net::Packet packet;
    proto::Reconstruct& asked = *packet.envelope.mutable_reconstruct();
    asked.set_file(rows_.keeper.shape.file.value);
    asked.set_index(rows_.keeper.index);
    asked.set_first(next_[piece.stream]);
    asked.set_count((piece.wanted - 1) * next_.size() + 1);
    *asked.mutable_file_length() = wire::proto_of(rows_.file_length);
    asked.set_or_hashes(true);
    return packet;
  };
  request.take = [this, &piece](net::Packet& reply) { return take(piece, reply); };
  requests.add(std::move(request));
}

Status RowCheck::take(Piece& piece, net::Packet& reply) const {
  const proto::ReadReply& answer = reply.envelope.read_reply();
  piece.rows = answer.rows();
  piece.body = std::move(reply.body);
  piece.hashes.assign(answer.stretch_hashes().begin(), answer.stretch_hashes().end());
  if (piece.rows == 0 || piece.rows > piece.wanted)
    return fail(Code::kCorrupt, fmt::format("{} rows came, and {} were asked for", piece.rows, piece.wanted));
  const Row first = next_[piece.stream];
  const Row last = first + (piece.rows - 1) * next_.size();
  const std::uint64_t pages = page_of(last) - page_of(first) + 1;
  if (piece.hashes.empty() || piece.hashes.size() == pages) return {};
  return fail(Code::kCorrupt, fmt::format("{} hashes came of {} pages", piece.hashes.size(), pages));
}

Result<Row> RowCheck::compare_rows(const Piece& piece) const {
  const std::uint64_t step = next_.size();
  Row row = next_[piece.stream];
  std::vector<std::uint32_t> lengths;
  std::span<const std::byte> theirs = piece.body.span();
  if (rows_.keeper.format().is_fixed()) {
    const std::uint32_t length = rows_.keeper.format().record_length;
    PIF_TRY_VALUE(const std::uint32_t last, last_row_bytes(theirs.size(), piece.rows, length));
    lengths.assign(piece.rows, length);
    lengths.back() = last;
  } else {
    PIF_TRY_VALUE(auto parsed, parse_variable(theirs, piece.rows));
    lengths = std::move(parsed.lengths);
    theirs = parsed.data;
  }
  const component::Shape shape = component::Shape::of(rows_.keeper.shape.file, rows_.keeper.format(), 1);
  const auto source = component::make_row_source(shape, rows_.reader);
  component::PackedRows own;
  for (std::size_t done = 0; done < lengths.size();) {
    PIF_TRY(source->read(row, lengths.size() - done, step, own));
    PIF_ASSERT(!own.lengths.empty() && own.lengths.size() <= lengths.size() - done, own.lengths.size(), done);
    std::span<const std::byte> ours = own.bytes;
    for (const std::uint32_t bytes : own.lengths) {
      const std::uint32_t wanted = lengths[done++];
      if (bytes != wanted || !std::ranges::equal(ours.first(bytes), theirs.first(wanted))) return row;
      ours = ours.subspan(bytes);
      theirs = theirs.subspan(wanted);
      row += step;
    }
  }
  return rows_.range.end;
}

// By whole stretches. Which rows of one are others nobody can say: that waits for whoever is away.
Result<Row> RowCheck::compare_hashes(const Piece& piece) const {
  const Format& format = rows_.keeper.format();
  const std::uint64_t page_rows = rows_.keeper.shape.page_rows();
  const std::uint64_t step = next_.size();
  const Row wanted = next_[piece.stream];
  const component::Shape shape = component::Shape::of(rows_.keeper.shape.file, format, 1);
  const auto source = component::make_row_source(shape, rows_.reader);
  for (std::size_t i = 0; i < piece.hashes.size(); ++i) {
    const Row first = (page_of(wanted) + i) * page_rows * step + wanted % step;
    if (first + (page_rows - 1) * step >= rows_.reader.tail().rows) return fail(cannot_say(first));
    component::PackedRows stretch, part;
    while (stretch.lengths.size() < page_rows) {
      const std::uint64_t done = stretch.lengths.size();
      PIF_TRY(source->read(first + done * step, page_rows - done, step, part));
      PIF_ASSERT(!part.lengths.empty() && part.lengths.size() <= page_rows - done, part.lengths.size(), done);
      stretch.lengths.insert(stretch.lengths.end(), part.lengths.begin(), part.lengths.end());
      stretch.bytes.insert(stretch.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    if (component::stretch_hash(format, stretch) != piece.hashes[i]) return fail(cannot_say(first));
  }
  return rows_.range.end;
}

Error RowCheck::cannot_say(Row first) const {
  const RecordNumber record = rows_.keeper.layout.record_at({rows_.keeper.index, first});
  return {Code::kUnavailable,
          fmt::format("file {}: what is here of record {} and those in one page with it is not as in that page, of "
                      "which another LFS is away, too",
                      name_of(rows_.keeper.shape.file), record),
          {}};
}

}  // namespace pif::lfs
