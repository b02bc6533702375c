#include "file/piece_reader.h"

#include <algorithm>
#include <cstring>

#include "file/file_state.h"
#include "pif/access/checked_read.h"
#include "pif/access/piece_requests.h"
#include "pif/access/rebuilt_read.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::client {

using component::Extent;
using component::ExtentRun;

namespace {

constexpr std::uint64_t kRebuiltAtOnce = 8u << 20;      // bytes of records, with those that lie between them
constexpr std::uint64_t kRebuiltRowsBytes = 64u << 10;  // of rows that are asked for together

}  // namespace

PieceReader::PieceReader(FileState& file, Fill<ExtentRun> fill, bool is_foreground, std::optional<std::uint64_t> result)
    : AsyncOperation(*file.session, file.grant, is_foreground),
      file_(file),
      fill_(std::move(fill)),
      result_(result),
      pieces_(file.parts.layout, file.parts.format.record_length, is_foreground ? kPiecesReadAtOnce : kPiecesAtOnce) {
  PIF_ASSERT(file.parts.format.is_fixed() && (!file.creating() || file.scattered.is_on()), file.phase);
}

Result<bool> PieceReader::next() {
  switch (phase_) {
    case Phase::kFill:
      if (!fill()) return false;
      phase_ = Phase::kOpen;
      break;
    case Phase::kOpen:
      open();
      phase_ = Phase::kOpenParity;
      break;
    case Phase::kOpenParity:
      if (!file_.creating()) file_.reader.add_parity_opens(*requests_, lfss_);
      phase_ = Phase::kRead;
      break;
    case Phase::kRead:
      read();
      phase_ = Phase::kRecover;
      break;
    case Phase::kRecover:
      PIF_TRY(recover());
      phase_ = Phase::kRebuild;
      break;
    case Phase::kRebuild:
      if (!rebuild()) phase_ = Phase::kFill;
      break;
  }
  return true;
}

// As FileState::in_newest_view(), once each turn.
bool PieceReader::may_go_on(const Error& why) {
  if (has_looked_anew_ || !file_.may_read_again(why, passed_over_)) return false;
  has_looked_anew_ = true;
  near_.clear();
  rest_.clear();
  rebuilt_.clear();
  phase_ = Phase::kOpen;
  return true;
}

// The next turn; whether there is one.
bool PieceReader::fill() {
  PIF_ASSERT(near_.empty() && rest_.empty() && rebuilt_.empty(), near_.size(), rest_.size(), rebuilt_.size());
  done_ += pieces_.bytes;
  has_looked_anew_ = false;
  passed_over_ = file_.session->links().passed_over();
  pieces_.clear();
  lfss_.clear();
  asked_.clear();
  fill_(pieces_);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (pieces_.of[lfs].empty()) continue;
    lfss_.push_back(lfs);
    if (!pieces_.is_rising[lfs]) sort_pieces(pieces_.of[lfs]);
  }
  return !lfss_.empty();
}

void PieceReader::open() {
  if (!file_.creating()) return file_.reader.add_opens(*requests_, lfss_);
  for (const LfsIndex lfs : lfss_) file_.component(lfs).open_writer(*requests_);
}

void PieceReader::read() {
  std::uint64_t bytes = 0;
  for (const LfsIndex lfs : lfss_) {
    access::ComponentAccess& component = file_.component(lfs);
    const bool is_near = file_.creating() ? !component.by_message() : component.has_reader();
    if (!is_near) {
      ask(lfs);
      continue;
    }
    Near& near = near_.emplace_back(Near{lfs, 0, {}, {}});
    if (!file_.creating()) near.reader = component.reader();
    for (const ExtentRun& run : pieces_.of[lfs]) near.bytes += run.count * run.size;
    bytes += near.bytes;
    add_task([this, &near] { read_near(near); });
  }
  start_tasks(bytes);
}

// On any thread.
void PieceReader::read_near(Near& near) {
  PIF_ASSERT(near.lfs < pieces_.of.size(), near.lfs, pieces_.of.size());
  if (near.reader) {
    near.outcome = component::ExtentReader(*near.reader).read(pieces_.of[near.lfs]);
  } else {
    near.outcome = component::ExtentReader(*file_.component(near.lfs).files().data).read(pieces_.of[near.lfs]);
  }
}

void PieceReader::ask(LfsIndex lfs) {
  access::RefusedPieces refused;
  if (access::can_be_rebuilt(file_.parts))
    refused = [this, lfs](std::span<const Extent> pieces, Error error) -> Status {
      if (!access::can_rebuild(file_.parts, error)) return fail(std::move(error));
      add_rest(lfs, pieces, std::move(error));
      return {};
    };
  const auto& pieces = asked_.emplace_back(single_pieces<Extent>(pieces_.of[lfs]));
  access::read_pieces_by_message(*requests_, lfs, pieces, file_.counts.bytes_by_message, std::move(refused));
}

// What could not be read through descriptors (it may have met a change half way) is asked for.
Status PieceReader::recover() {
  for (const Near& near : near_) {
    if (!near.outcome) {
      PIF_TRY(access::note_silent_disk(*requests_, near.lfs, near.outcome.error()));
      ask(near.lfs);
      continue;
    }
    file_.counts.bytes_by_descriptor += near.bytes;
  }
  near_.clear();
  return {};
}

// ---- of LFSs that are away -----------------------------------------------------------------------------------------

// Cut into pieces of one record each.
void PieceReader::add_rest(LfsIndex lfs, std::span<const Extent> pieces, Error why) {
  const std::uint64_t length = file_.parts.format.record_length;
  const auto shared_why = std::make_shared<const Error>(std::move(why));
  for (Extent left : pieces) {
    while (left.size > 0) {
      const std::size_t size = std::min<std::uint64_t>(left.size, length - left.offset % length);
      rest_.push_back({lfs, {left.offset, size, left.at}, shared_why});
      left = {left.offset + size, left.size - size, left.at + size};
    }
  }
}

// Takes what came of the records before, and asks for some more; false: there are none.
bool PieceReader::rebuild() {
  const std::uint64_t length = file_.parts.format.record_length;
  for (const Rebuilt& rebuilt : rebuilt_) take(rebuilt);
  rebuilt_.clear();
  for (std::uint64_t bytes = 0; !rest_.empty() && bytes < kRebuiltAtOnce; rest_.pop_front()) {
    const Rest& next = rest_.front();
    const Row row = next.piece.offset / length;
    const RecordNumber record = file_.parts.layout.record_at({next.lfs, row});
    if (rebuilt_.empty() || !goes_on(rebuilt_.back(), next))
      rebuilt_.push_back({next.lfs, row, row, record, {}, {}, next.why});
    Rebuilt& rebuilt = rebuilt_.back();
    PIF_ASSERT(record >= rebuilt.record, record, rebuilt.record);
    bytes -= rebuilt.bytes.size();
    PIF_ASSERT(rebuilt.last <= row, rebuilt.last, row);
    rebuilt.last = row;
    rebuilt.bytes.resize((record - rebuilt.record + 1) * length);
    bytes += rebuilt.bytes.size();
    rebuilt.pieces.push_back(next.piece);
  }
  for (Rebuilt& rebuilt : rebuilt_) ask_rebuilt(rebuilt);
  return !rebuilt_.empty();
}

void PieceReader::take(const Rebuilt& rebuilt) const {
  const std::uint64_t length = file_.parts.format.record_length;
  for (const Extent& piece : rebuilt.pieces) {
    const RecordNumber record = file_.parts.layout.record_at({rebuilt.lfs, piece.offset / length});
    const std::size_t at = (record - rebuilt.record) * length + piece.offset % length;
    PIF_ASSERT(at + piece.size <= rebuilt.bytes.size(), at, piece.size, rebuilt.bytes.size());
    std::memcpy(piece.at, rebuilt.bytes.data() + at, piece.size);
  }
}

// Whether it is in the same row, or in the next one, and that many rows are asked for at once.
bool PieceReader::goes_on(const Rebuilt& rebuilt, const Rest& next) const {
  const std::uint64_t length = file_.parts.format.record_length;
  const Row row = next.piece.offset / length;
  if (next.lfs != rebuilt.lfs || row < rebuilt.last || row > rebuilt.last + 1) return false;
  return row == rebuilt.last || (row - rebuilt.first + 1) * length <= kRebuiltRowsBytes;
}

void PieceReader::ask_rebuilt(Rebuilt& rebuilt) {
  PIF_ASSERT(rebuilt.first <= rebuilt.last, rebuilt.lfs, rebuilt.first, rebuilt.last);
  const access::RowRange rows{rebuilt.lfs, rebuilt.first, rebuilt.last - rebuilt.first + 1, rebuilt.record,
                              file_.parts.layout.is_even()};
  access::read_rebuilt(*requests_, {rows, rebuilt.bytes.data(), rebuilt.record, file_.length.now(), 0},
                       file_.counts.bytes_by_message, *rebuilt.why);
}

// ---- requests ------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<PieceReader>> make_piece_reader(FileState& file, const File::Pieces& wanted,
                                                       std::span<std::byte> out, bool is_foreground) {
  PIF_TRY_VALUE(Walks walks, Walks::make(wanted, out.size(), is_foreground));
  const bool by_pieces = file.parts.format.is_fixed() && (!file.creating() || file.scattered.is_on());
  if (!by_pieces) return nullptr;
  if (!file.creating()) {
    PIF_TRY_VALUE(const auto bounds, walks.file->bounds(wanted.displacement, wanted.skip, walks.bytes));
    const bool may_be_past = static_cast<std::uint64_t>(bounds.highest) > file.length.bytes();
    if (!file.length.is_known() || may_be_past) PIF_TRY(file.length.get(true));
  }
  const std::uint64_t file_end = file.creating() ? kFileBytesMax : file.length.bytes();
  PIF_TRY_VALUE(auto fill, WalkedPieces<ExtentRun>::make(std::move(walks), wanted, out.data(), file_end));
  return std::make_unique<PieceReader>(file, std::move(fill), is_foreground);
}

}  // namespace pif::client
