#include "file/overwriter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pieces/piece_source.h"
#include "pif/access/piece_requests.h"
#include "pif/access/row_body.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

constexpr std::size_t kTurnsAtOnce = 8;

// within: a part of one row, from this byte on.
access::BulkRequest overwrite_request(const FileState& file, const RowRange& piece, access::RowBody rows,
                                      std::optional<std::uint32_t> within = {}) {
  PIF_ASSERT(piece.rows > 0, piece.lfs, piece.row);
  const auto body = std::make_shared<const access::RowBody>(std::move(rows));
  access::BulkRequest request;
  request.lfs = piece.lfs;
  request.bytes = body->size();
  request.patient = true;
  request.make = [id = file.parts.file.value, piece, body, within] {
    net::Packet packet;
    proto::Overwrite& overwrite = *packet.envelope.mutable_overwrite();
    overwrite.set_file(id);
    overwrite.set_first(piece.row);
    overwrite.set_count(piece.rows);
    if (within) {
      overwrite.set_within(*within);
      overwrite.set_bytes(static_cast<std::uint32_t>(body->size()));
    }
    packet.body = body->to_buffer();
    return packet;
  };
  return request;
}

}  // namespace

Status Overwriter::start(RecordNumber first, std::span<const std::byte> in, access::Requests& requests) {
  PIF_TRY(file_.check_may_overwrite());
  const FileParts& parts = file_.parts;
  const std::size_t length = parts.format.record_length;
  const std::uint64_t count = (in.size() + length - 1) / length;
  if (in.size() != (count - 1) * length + file_.length.record_bytes(first + count - 1)) {
    return fail(Code::kInvalid, fmt::format("{}: records {} to {} keep their lengths: {} bytes do not fit them",
                                            parts.path, first, first + count, in.size()));
  }
  access::split(parts.layout, {first, first + count}, ranges_);
  const std::uint64_t rows_max = access::rows_per_message(parts.format.record_length);
  PIF_ASSERT(rows_max > 0, parts.format.record_length);
  for (const RowRange& rows : ranges_) {
    for (const RowRange& piece : access::pieces_of(parts.layout, rows, rows_max)) {
      access::RowBody body{{}, access::gather(parts, piece, first, in)};
      file_.counts.bytes_by_message += body.size();
      requests.add(overwrite_request(file_, piece, std::move(body)));
    }
  }
  return requests.step();
}

Status Overwriter::overwrite(RecordNumber first, std::span<const std::byte> in) {
  const FileLength before = file_.length.now();
  access::Requests requests(file_.session->links(), file_.grant);
  auto status = start(first, in, requests);
  if (status) status = file_.run(requests);
  // Of a short last record whose length has changed the LFS can only say that the bytes do not fit it.
  if (status || status.error().code != Code::kInvalid || !file_.length.ends_short()) return status;
  PIF_TRY_VALUE(const FileLength now, file_.length.get(true));
  return now == before ? status : fail(Code::kRetry, std::move(status.error().text), std::move(status.error().node));
}

Status Overwriter::overwrite_within(RecordNumber record, std::uint32_t within, std::span<const std::byte> in) {
  PIF_TRY(file_.check_may_overwrite());
  PIF_ASSERT(within + in.size() <= file_.parts.format.record_length, record, within, in.size());
  const Cell cell = file_.parts.layout.locate(record);
  file_.counts.bytes_by_message += in.size();
  access::Requests requests(file_.session->links(), file_.grant);
  requests.add(overwrite_request(file_, {cell.lfs, cell.row, 1, record, true}, {{}, {in.begin(), in.end()}}, within));
  return file_.run(requests);
}

Status Overwriter::overwrite_batch(RecordNumber first, std::span<const std::uint32_t> lengths,
                                   std::span<const std::byte> data) {
  PIF_TRY(file_.check_may_overwrite());
  const FileParts& parts = file_.parts;
  std::vector<std::uint64_t> starts(lengths.size() + 1, 0);
  for (std::size_t i = 0; i < lengths.size(); ++i) starts[i + 1] = starts[i] + lengths[i];
  PIF_ASSERT(starts.back() == data.size(), starts.back(), data.size());
  access::split(parts.layout, {first, first + lengths.size()}, ranges_);
  access::Requests requests(file_.session->links(), file_.grant);
  for (const RowRange& range : ranges_) {
    RowRange piece;
    access::RowBody rows;
    const auto send = [&] {
      if (piece.rows == 0) return;
      requests.add(overwrite_request(file_, piece, std::exchange(rows, {})));
      piece.rows = 0;
    };
    for (std::uint64_t i = 0; i < range.rows; ++i) {
      const RecordNumber record = access::record_of(parts.layout, range, i);
      PIF_ASSERT(record >= first && record - first < lengths.size(), record, first, lengths.size());
      const std::uint64_t size = lengths[record - first];
      if (piece.rows > 0 && rows.data.size() + size > kBulkBytes) send();
      if (piece.rows == 0) piece = {range.lfs, range.row + i, 0, record, range.even};
      const auto from = data.subspan(starts[record - first], size);
      rows.data.insert(rows.data.end(), from.begin(), from.end());
      rows.lengths.push_back(static_cast<std::uint32_t>(size));
      ++piece.rows;
    }
    send();
  }
  file_.counts.bytes_by_message += data.size();
  return file_.run(requests);
}

// ---- pieces ---------------------------------------------------------------------------------------------------------

PieceOverwriter::PieceOverwriter(FileState& file) : file_(file), requests_(file.session->links(), file.grant) {}

Status PieceOverwriter::write(patterns::Zip& zip, std::span<const std::byte> in) {
  while (zip.left() > 0) PIF_TRY(write_turn(zip, in));
  return file_.run(requests_);
}

Status PieceOverwriter::write_turn(patterns::Zip& zip, std::span<const std::byte> in) {
  const std::uint64_t length = file_.parts.format.record_length;
  const auto turn = std::make_shared<Turn>(file_.parts.layout, file_.parts.format.record_length, kPiecesAtOnce);
  std::uint64_t begin = UINT64_MAX, end = 0;
  const auto add = [&](std::uint64_t bytes_max) {
    const auto pair = zip.next(bytes_max);
    PIF_ASSERT(pair.has_value(), zip.left());
    const auto offset = static_cast<std::uint64_t>(pair->file_offset);
    turn->add(offset, pair->size, in.data() + pair->memory_offset);
    begin = std::min(begin, offset);
    end = std::max(end, offset + pair->size);
    return offset + pair->size;
  };
  while (zip.left() > 0 && turn->count < kPiecesAtOnce && turn->bytes < kBytesAtOnce) {
    const std::uint64_t before = turn->bytes;
    const std::uint64_t at = add(kBytesAtOnce);
    // A long piece is not cut inside a record, which changes whole or not at all.
    const bool is_cut = turn->bytes == before + kBytesAtOnce && at % length > 0;
    if (is_cut && zip.left() > 0) add(length - at % length);
  }
  PIF_ASSERT(begin < end && turn->count > 0, begin, end, turn->count);
  PIF_TRY(make_way(begin, end));
  send(turn);
  return requests_.step();
}

Status PieceOverwriter::make_way(std::uint64_t begin, std::uint64_t end) {
  if (begin < end_ && begin_ < end) {
    PIF_TRY(file_.run(requests_));
    begin_ = begin;
    end_ = end;
  }
  begin_ = std::min(begin_, begin);
  end_ = std::max(end_, end);
  PIF_ASSERT(begin_ <= begin && begin < end && end <= end_, begin_, begin, end, end_);
  while (count_turns() >= kTurnsAtOnce) PIF_TRY(file_.session->pump(requests_));
  return {};
}

void PieceOverwriter::send(const std::shared_ptr<Turn>& turn) {
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (turn->of[lfs].empty()) continue;
    if (!turn->is_rising[lfs]) settle_pieces(turn->of[lfs]);
    access::write_pieces_by_message(requests_, lfs, turn->of[lfs], file_.counts.bytes_by_message, turn);
  }
  under_way_.push_back(turn);
}

std::size_t PieceOverwriter::count_turns() {
  std::erase_if(under_way_, [](const std::weak_ptr<const Turn>& turn) { return turn.expired(); });
  return under_way_.size();
}

}  // namespace pif::client
