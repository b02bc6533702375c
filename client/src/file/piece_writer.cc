#include "file/piece_writer.h"

#include <algorithm>

#include "file/file_state.h"
#include "pif/access/piece_requests.h"
#include "pif/base/assert.h"
#include "pif/component/mapped_writes.h"

namespace pif::client {

using component::ConstExtent;

PieceWriter::PieceWriter(FileState& file, Fill<ConstExtent> fill, bool is_foreground,
                         std::optional<std::uint64_t> result)
    : AsyncOperation(*file.session, file.grant, is_foreground),
      file_(file),
      fill_(std::move(fill)),
      result_(result),
      pieces_(file.parts.layout, file.parts.format.record_length, kPiecesAtOnce) {
  PIF_ASSERT(file.scattered.is_on(), file.phase);
}

Result<bool> PieceWriter::next() {
  switch (phase_) {
    case Phase::kFill:
      if (!fill()) return false;
      phase_ = Phase::kOpen;
      break;
    case Phase::kOpen:
      for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
        if (!pieces_.of[lfs].empty()) file_.component(lfs).open_writer(*requests_);
      }
      phase_ = Phase::kWrite;
      break;
    case Phase::kWrite:
      write();
      phase_ = Phase::kTake;
      break;
    case Phase::kTake:
      PIF_TRY(take());
      phase_ = Phase::kFill;
      break;
  }
  return true;
}

// The next turn; whether there is one.
bool PieceWriter::fill() {
  pieces_.clear();
  PIF_ASSERT(near_.empty(), near_.size());
  end_ = fill_(pieces_);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (!pieces_.is_rising[lfs]) settle_pieces(pieces_.of[lfs]);
  }
  return pieces_.count > 0;
}

void PieceWriter::write() {
  std::uint64_t bytes = 0;
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    const auto& pieces = pieces_.of[lfs];
    if (pieces.empty()) continue;
    if (file_.component(lfs).by_message()) {
      access::write_pieces_by_message(*requests_, lfs, pieces, file_.counts.bytes_by_message);
      continue;
    }
    Near& near = near_.emplace_back(Near{lfs, *file_.component(lfs).files().data, 0, {}});
    for (const ConstExtent& piece : pieces) near.bytes += piece.size;
    bytes += near.bytes;
    add_task([&near, &pieces, &writeback = file_.scattered.writeback(lfs)] {
      near.outcome = component::write_extents_mapped(near.data, pieces);
      if (near.outcome) writeback.passed(near.data, {pieces.front().offset, pieces.back().offset + pieces.back().size});
    });
  }
  start_tasks(bytes);
}

// It is written: the file is that long at least.
Status PieceWriter::take() {
  for (const Near& near : near_) {
    if (!near.outcome) return fail(near.outcome.error().code, near.outcome.error().text, file_.node(near.lfs).name());
    file_.counts.bytes_by_descriptor += near.bytes;
  }
  near_.clear();
  done_ += pieces_.bytes;
  const std::uint64_t length = file_.parts.format.record_length;
  const std::uint64_t end = std::max(end_, file_.length.bytes());
  file_.length.grow_to({(end + length - 1) / length, end});
  PIF_ASSERT(file_.length.bytes() >= end_, file_.length.bytes(), end_);
  return {};
}

Result<std::unique_ptr<PieceWriter>> make_piece_writer(FileState& file, const File::Pieces& wanted,
                                                       std::span<const std::byte> in, bool is_foreground) {
  if (!file.creating()) return nullptr;
  PIF_TRY_VALUE(Walks walks, Walks::make(wanted, in.size(), is_foreground));
  if (walks.bytes == 0) return nullptr;
  PIF_TRY_VALUE(const auto bounds, walks.file->bounds(wanted.displacement, wanted.skip, walks.bytes));
  PIF_TRY(file.check_piece_end(static_cast<std::uint64_t>(bounds.highest)));
  PIF_TRY(file.check_not_done());
  PIF_TRY(file.scattered.begin());
  PIF_TRY(file.scattered.clear_gap(static_cast<std::uint64_t>(bounds.highest)));
  PIF_TRY_VALUE(auto fill, WalkedPieces<ConstExtent>::make(std::move(walks), wanted, in.data(), UINT64_MAX));
  return std::make_unique<PieceWriter>(file, std::move(fill), is_foreground);
}

}  // namespace pif::client
