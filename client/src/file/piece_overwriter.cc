#include "file/piece_overwriter.h"

#include <algorithm>

#include "file/file_state.h"
#include "file/piece_source.h"
#include "pif/access/piece_requests.h"
#include "pif/base/assert.h"

namespace pif::client {

namespace {

constexpr std::size_t kTurnsAtOnce = 8;

}  // namespace

PieceOverwriter::PieceOverwriter(FileState& file) : file_(file), requests_(file.session->links(), file.grant) {}

Status PieceOverwriter::write(patterns::Zip& zip, std::span<const std::byte> in) {
  while (zip.left() > 0) PIF_TRY(write_turn(zip, in));
  return file_.run(requests_);
}

Status PieceOverwriter::write_turn(patterns::Zip& zip, std::span<const std::byte> in) {
  const std::uint64_t length = file_.parts.format.record_length;
  const auto turn = std::make_shared<Turn>(file_.parts.layout, file_.parts.format.record_length);
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
