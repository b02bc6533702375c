#include "split/pieces.h"

#include <algorithm>

#include "pif/base/packed.h"

namespace pif::sort {
namespace {

using Word = std::uint32_t;

tl::unexpected<Error> nonsense() { return fail(Code::kInvalid, "records that are not what it says of them"); }

}  // namespace

PieceSender::PieceSender(std::span<const RunView> runs, std::vector<std::size_t> begin, std::vector<std::size_t> end,
                         Order& order, const Format& format)
    : runs_(runs),
      merger_(runs, std::move(begin), std::move(end), order),
      record_(format),
      is_fixed_(format.is_fixed()) {}

PieceBatch PieceSender::next(std::size_t bytes) {
  picks_.clear();
  const std::size_t words = is_fixed_ ? 1 : 2;  // of each record
  std::size_t size = 0;
  for (; !merger_.is_done() && (picks_.empty() || size < bytes); merger_.advance()) {
    picks_.push_back(merger_.peek());
    size += words * sizeof(Word) + record_.size(runs_[picks_.back().run].record(picks_.back().index));
  }
  is_done_ = merger_.is_done();
  PieceBatch batch{static_cast<std::uint32_t>(picks_.size()), is_done_, net::Buffer(size)};
  std::byte* row = batch.body.data();
  std::byte* length = row + picks_.size() * sizeof(Word);
  std::byte* at = row + picks_.size() * words * sizeof(Word);
  for (std::size_t i = 0; i < picks_.size(); ++i) {
    if (i + kAhead < picks_.size()) runs_[picks_[i + kAhead].run].fetch(picks_[i + kAhead].index);
    const RunView& run = runs_[picks_[i].run];
    const Bytes record = run.record(picks_[i].index);
    row = pack_number(row_of(run.elements[picks_[i].index]), row);
    const std::size_t size_here = record_.size(record);
    if (!is_fixed_) length = pack_number(static_cast<Word>(size_here), length);
    record_.copy(record, at);
    at += size_here;
  }
  return batch;
}

// ---- where they are merged ------------------------------------------------------------------------------------------

PieceMerger::PieceMerger(std::vector<LfsIndex> lfss, const KeyMaker& maker, Order& order, const Format& format)
    : pieces_(lfss.size()), maker_(maker), order_(order), format_(format) {
  for (std::size_t i = 0; i < lfss.size(); ++i) pieces_[i].lfs = lfss[i];
}

Status PieceMerger::take(std::size_t piece, PieceBatch from) {
  Piece& to = pieces_[piece];
  if (to.is_over) return nonsense();
  to.is_over = from.is_last;
  if (from.count == 0) return from.body.empty() ? Status() : nonsense();
  Batch batch;
  PIF_TRY(open(from, batch));
  batch.body = std::move(from.body);
  to.batches.push_back(std::move(batch));
  return {};
}

Status PieceMerger::open(const PieceBatch& from, Batch& batch) {
  Bytes records = from.body.span();
  const auto rows = PackedNumbers<Word>::take(records, from.count);
  const auto lengths = PackedNumbers<Word>::take(records, format_.is_fixed() ? 0 : from.count);
  if (!rows || !lengths) return nonsense();
  if (format_.is_fixed() && records.size() != std::size_t{from.count} * format_.record_length) return nonsense();
  batch.records = records.data();
  batch.elements.reserve(from.count);
  if (!format_.is_fixed()) batch.ends.push_back(0);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < from.count; ++i) {
    const Word row = (*rows)[i], length = format_.is_fixed() ? format_.record_length : (*lengths)[i];
    if (records.size() - at < length) return nonsense();
    const Bytes record = records.subspan(at, length);
    if (maker_.plain_offset()) {
      const auto* const key = reinterpret_cast<const char*>(record.data()) + *maker_.plain_offset();
      batch.elements.push_back(element_of({key, std::min<std::size_t>(*maker_.fixed_length(), kPrefixBytes)}, row));
    } else {
      PIF_TRY(maker_.make_key(record, key_));
      batch.elements.push_back(element_of(key_, row));
    }
    at += length;
    if (!format_.is_fixed()) batch.ends.push_back(at);
  }
  return at == records.size() ? Status() : nonsense();
}

RunView PieceMerger::view(const Piece& piece) const {
  RunView view;
  view.lfs = piece.lfs;
  view.record_length = format_.record_length;
  if (piece.batches.empty()) return view;
  const Batch& batch = piece.batches.front();
  view.elements = batch.elements;
  view.records = batch.records;
  if (!format_.is_fixed()) view.ends = batch.ends.data();
  return view;
}

bool PieceMerger::is_ready() const {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& piece) { return piece.is_over || !piece.batches.empty(); });
}

bool PieceMerger::is_done() const {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& piece) { return piece.is_over && piece.batches.empty(); });
}

// What a piece has not sent yet comes after the last of its first batch: the lowest of these last ones is how far all
// can be merged.
Merger PieceMerger::begin_merge(std::vector<RunView>& views) {
  for (const Piece& piece : pieces_) views.push_back(view(piece));
  std::optional<std::size_t> bound;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!is_bound(pieces_[i])) continue;
    const std::size_t last = views[i].elements.size() - 1;
    if (!bound || order_.less(views[i], last, views[*bound], views[*bound].elements.size() - 1)) bound = i;
  }
  std::vector<std::size_t> begin, end;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    std::size_t low = piece.at, high = views[i].elements.size();
    if (bound && i != *bound) {
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (order_.less(views[i], middle, views[*bound], views[*bound].elements.size() - 1))
          low = middle + 1;
        else
          high = middle;
      }
    }
    piece.end = high;
    begin.push_back(piece.at);
    end.push_back(high);
  }
  return Merger(views, std::move(begin), std::move(end), order_);
}

void PieceMerger::end_merge() {
  for (Piece& piece : pieces_) {
    piece.at = piece.end;
    if (piece.batches.empty() || piece.at < piece.batches.front().elements.size()) continue;
    piece.batches.pop_front();
    piece.at = piece.end = 0;
    ++piece.merged;
  }
}

}  // namespace pif::sort
