#include "parity/row_check.h"

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

void RowCheck::start(Done done) {
  done_ = std::move(done);
  ++under_way_;  // until all have begun
  for (std::size_t i = 0; i < next_.size(); ++i) step(i);
  --under_way_;
  end_if_idle();
}

void RowCheck::step(std::size_t stream) {
  if (!status_ || !rows_.keepers[stream] || next_[stream] >= first_other_) return;
  auto piece = std::make_shared<Piece>();
  piece->stream = stream;
  ++under_way_;
  keeping_.peers.run(
      grant_, [this, &piece](access::Requests& requests) { ask(requests, piece); },
      [self = shared_from_this(), piece](const Status& status) {
        if (status) return self->compare(piece);
        --self->under_way_;
        if (self->status_) self->status_ = status;
        self->end_if_idle();
      });
}

void RowCheck::ask(access::Requests& requests, const PiecePtr& piece) {
  const Format& format = rows_.keeper.format();
  const std::uint64_t step = next_.size();
  const Row first = next_[piece->stream];
  const std::uint64_t left = (rows_.range.end - first - 1) / step + 1;
  const std::uint64_t at_once =
      format.is_fixed() ? std::max<std::uint64_t>(kBulkBytes / format.record_length, 1) : kVariableRows;
  const std::uint64_t wanted = std::min(left, at_once);
  access::BulkRequest request;
  request.lfs = *rows_.keepers[piece->stream];
  request.bytes = format.is_fixed() ? wanted * format.record_length : kBulkBytes;
  request.patient = true;
  request.make = [self = shared_from_this(), first, count = (wanted - 1) * step + 1] {
    net::Packet packet;
    proto::Reconstruct& asked = *packet.envelope.mutable_reconstruct();
    asked.set_file(self->rows_.keeper.shape.file.value);
    asked.set_index(self->rows_.keeper.index);
    asked.set_first(first);
    asked.set_count(count);
    *asked.mutable_file_length() = wire::proto_of(self->rows_.file_length);
    return packet;
  };
  request.take = [piece, wanted](net::Packet& reply) -> Status {
    piece->rows = reply.envelope.read_reply().rows();
    piece->body = std::move(reply.body);
    if (piece->rows > 0 && piece->rows <= wanted) return {};
    return fail(Code::kCorrupt, fmt::format("{} rows came, and {} were asked for", piece->rows, wanted));
  };
  requests.add(std::move(request));
}

void RowCheck::compare(const PiecePtr& piece) {
  keeping_.works.submit([self = shared_from_this(), piece] { piece->first_other = self->compare_rows(*piece); },
                        [self = shared_from_this(), piece] { self->compared(piece); });
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

void RowCheck::compared(const PiecePtr& piece) {
  --under_way_;
  if (!piece->first_other) {
    if (status_) status_ = fail(piece->first_other.error());
  } else {
    first_other_ = std::min(first_other_, *piece->first_other);
    next_[piece->stream] += piece->rows * next_.size();
    step(piece->stream);
  }
  end_if_idle();
}

void RowCheck::end_if_idle() {
  if (under_way_ > 0 || !done_) return;
  const Done done = std::exchange(done_, {});
  done(status_, first_other_);
}

}  // namespace pif::lfs
