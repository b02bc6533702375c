#include "rebuild/row_streams.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "context/lfs_context.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kAllStreamsBytes = 4u << 20;  // of one piece each, where they are many
constexpr std::uint64_t kPieceRowsMax = 64u << 10;    // variable records: lengths travel, too

std::uint64_t piece_rows_for(const Format& format, std::size_t streams, std::uint64_t row_bytes) {
  const std::uint64_t bytes = std::min<std::uint64_t>(kBulkBytes, kAllStreamsBytes / streams);
  const std::uint64_t rows = std::max<std::uint64_t>(1, bytes / std::max<std::uint64_t>(row_bytes, 1));
  return format.is_fixed() ? rows : std::min(rows, kPieceRowsMax);
}

}  // namespace

std::uint64_t RowStreams::Piece::rows() const {
  std::uint64_t sum = 0;
  for (const Body& body : bodies) sum += body.rows;
  return sum;
}

RowStreams::RowStreams(const Format& format, std::uint64_t rows, std::size_t streams, std::uint64_t row_bytes,
                       Row first)
    : format_(format),
      rows_(rows),
      piece_rows_(piece_rows_for(format, streams, format.is_fixed() ? format.record_length : row_bytes)),
      row_bytes_(format.is_fixed() ? format.record_length : row_bytes),
      streams_(streams),
      written_(first) {
  PIF_ASSERT(streams > 0 && first <= rows, streams, first, rows);
  for (std::size_t i = 0; i < streams; ++i) streams_[i].next = first_of(i);
}

RowStreams::PiecePtr RowStreams::next() {
  Stream* best = nullptr;  // the one furthest behind, for all wait for that
  for (Stream& stream : streams_) {
    // How many rows of variable records come is not known before they are there.
    const bool is_open = !stream.pieces.empty() && !stream.pieces.back()->is_complete;
    const bool may = stream.next < rows_ && stream.pieces.size() < kAheadMax && (format_.is_fixed() || !is_open);
    if (may && (best == nullptr || stream.next < best->next)) best = &stream;
  }
  if (best == nullptr) return nullptr;
  auto piece = std::make_shared<Piece>();
  piece->stream = static_cast<std::size_t>(best - streams_.data());
  piece->first = best->next;
  piece->step = streams_.size();
  piece->wanted = std::min(piece_rows_, (rows_ - best->next - 1) / piece->step + 1);
  piece->expected_bytes = piece->wanted * (row_bytes_ + (format_.is_fixed() ? 0 : sizeof(std::uint32_t)));
  best->pieces.push_back(piece);
  best->next += piece->wanted * piece->step;  // of variable records: corrected when it is complete
  return piece;
}

Status RowStreams::take_fixed(Piece::Body& body) const {
  auto last = last_row_bytes(body.buffer.size(), body.rows, format_.record_length);
  if (!last) return fail(std::move(last.error()));
  body.last_bytes = *last;
  body.data = body.buffer.span();
  return {};
}

Status RowStreams::take(Piece& piece, std::uint64_t rows, net::Buffer buffer) {
  PIF_ASSERT(!piece.is_complete && piece.stream < streams_.size(), piece.first, piece.stream);
  const auto nonsense = [&](std::string_view why) {
    return fail(Code::kCorrupt,
                fmt::format("its reply is not what was asked for, rows from {} on: {}", piece.next(), why));
  };
  if (rows == 0 || rows > piece.wanted - piece.rows()) return nonsense(fmt::format("{} rows", rows));
  Piece::Body body;
  body.rows = rows;
  body.buffer = std::move(buffer);
  if (format_.is_fixed()) {
    if (auto taken = take_fixed(body); !taken) return nonsense(taken.error().text);
    // Only the last record of a file may be short.
    const bool is_last = piece.next() + (rows - 1) * piece.step + 1 == rows_;
    if (body.last_bytes != format_.record_length && !is_last) return nonsense("a short record that is not the last");
  } else {
    auto parsed = parse_variable(body.buffer.span(), rows);
    if (!parsed) return nonsense(parsed.error().text);
    body.lengths = std::move(parsed->lengths);
    body.data = parsed->data;
  }
  piece.bodies.push_back(std::move(body));
  piece.is_complete = !format_.is_fixed() || piece.rows() == piece.wanted;
  if (!format_.is_fixed()) streams_[piece.stream].next = piece.next();
  return {};
}

// The first row of the stream that has not been written.
Row RowStreams::first_of(std::size_t index) const {
  const std::uint64_t n = streams_.size();
  return written_ + (index + n - written_ % n) % n;
}

Row RowStreams::frontier(const Stream& stream, std::size_t index) const {
  Row next = first_of(index);
  for (const PiecePtr& piece : stream.pieces) {
    if (!piece->is_complete) break;
    next = piece->next();
  }
  return std::min(next, rows_);
}

RowStreams::Batch RowStreams::take_ready() {
  Batch batch{written_, rows_, {}};
  for (std::size_t i = 0; i < streams_.size(); ++i) batch.end = std::min(batch.end, frontier(streams_[i], i));
  PIF_ASSERT(batch.end >= batch.first, batch.end, batch.first);
  if (batch.end == batch.first) return batch;
  for (Stream& stream : streams_) {
    auto& pieces = batch.pieces.emplace_back();
    for (auto at = stream.pieces.begin(); at != stream.pieces.end() && (*at)->first < batch.end;) {
      pieces.push_back(*at);
      PIF_ASSERT((*at)->is_complete, (*at)->first, batch.end);
      const bool is_used_up = (*at)->next() - (*at)->step < batch.end;
      at = is_used_up ? stream.pieces.erase(at) : std::next(at);
    }
  }
  written_ = batch.end;
  return batch;
}

namespace {

using Piece = RowStreams::Piece;

void copy_fixed(std::uint64_t length, const RowStreams::Batch& batch, const Piece& piece, std::vector<std::byte>& out) {
  Row row = piece.first;
  for (const Piece::Body& body : piece.bodies) {
    const std::byte* from = body.data.data();
    for (std::uint64_t i = 0; i < body.rows; ++i, row += piece.step, from += length) {
      if (row < batch.first) continue;
      if (row >= batch.end) return;
      const std::uint64_t bytes = i + 1 == body.rows ? body.last_bytes : length;
      std::memcpy(out.data() + (row - batch.first) * length, from, bytes);
    }
  }
}

RowStreams::Rows assemble_fixed(const Format& format, const RowStreams::Batch& batch) {
  RowStreams::Rows out;
  const std::uint64_t length = format.record_length;
  out.bytes.resize((batch.end - batch.first) * length);
  out.last_bytes = format.record_length;
  for (const auto& pieces : batch.pieces) {
    for (const auto& piece : pieces) {
      copy_fixed(length, batch, *piece, out.bytes);
      if (piece->next() - piece->step + 1 == batch.end) out.last_bytes = piece->bodies.back().last_bytes;
    }
  }
  return out;
}

// Where one stream is.
struct Cursor {
  const std::vector<RowStreams::PiecePtr>* pieces = nullptr;
  std::size_t piece = 0, body = 0;
  std::uint64_t row = 0;    // in the body
  std::uint64_t bytes = 0;  // of it, in front of the row

  // Its next row; then the one behind it is next.
  std::span<const std::byte> take() {
    while (row == (*pieces)[piece]->bodies[body].rows) {
      row = bytes = 0;
      if (++body < (*pieces)[piece]->bodies.size()) continue;
      body = 0;
      ++piece;
    }
    const Piece::Body& from = (*pieces)[piece]->bodies[body];
    const std::span<const std::byte> out = from.data.subspan(bytes, from.lengths[row]);
    bytes += from.lengths[row++];
    return out;
  }
};

RowStreams::Rows assemble_variable(const RowStreams::Batch& batch) {
  RowStreams::Rows out;
  const std::uint64_t n = batch.pieces.size();
  std::vector<Cursor> cursors(n);
  for (std::size_t i = 0; i < n; ++i) {
    cursors[i].pieces = &batch.pieces[i];
    if (batch.pieces[i].empty()) continue;
    for (Row row = batch.pieces[i].front()->first; row < batch.first; row += n) (void)cursors[i].take();
  }
  out.lengths.reserve(batch.end - batch.first);
  for (Row row = batch.first; row < batch.end; ++row) {
    const auto bytes = cursors[row % n].take();
    out.lengths.push_back(static_cast<std::uint32_t>(bytes.size()));
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace

RowStreams::Rows RowStreams::assemble(const Format& format, const Batch& batch) {
  return format.is_fixed() ? assemble_fixed(format, batch) : assemble_variable(batch);
}

}  // namespace pif::lfs
