#include "split/pieces.h"

#include <algorithm>

#include "pif/tool/narrow.h"

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
  rows_.clear();
  lengths_.clear();
  std::size_t size = 0;
  Word highest = 0, longest = 0;
  for (; !merger_.is_done() && (picks_.empty() || size < bytes); merger_.advance()) {
    const auto pick = merger_.peek();
    const RunView& run = runs_[pick.run];
    const auto length = static_cast<Word>(record_.size(run.record(pick.index)));
    picks_.push_back(pick);
    rows_.push_back(row_of(run.elements[pick.index]));
    lengths_.push_back(length);
    highest = std::max(highest, rows_.back());
    longest = std::max(longest, length);
    size += length;
  }
  is_done_ = merger_.is_done();
  if (picks_.empty()) return {0, is_done_, net::Buffer()};
  const std::size_t count = picks_.size(), row = tool::narrow_width(highest, tool::Room::kAlways),
                    length = tool::narrow_width(longest, tool::Room::kAlways);
  const std::size_t numbers = 1 + count * row + (is_fixed_ ? 0 : 1 + count * length);
  PieceBatch batch{static_cast<std::uint32_t>(count), is_done_, net::Buffer(numbers + size)};
  std::byte* at = tool::pack_narrow(count, row, batch.body.data(), [&](std::uint64_t i) { return rows_[i]; });
  if (!is_fixed_) at = tool::pack_narrow(count, length, at, [&](std::uint64_t i) { return lengths_[i]; });
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) runs_[picks_[i + kAhead].run].fetch(picks_[i + kAhead].index);
    const Bytes record = runs_[picks_[i].run].record(picks_[i].index);
    record_.copy(record, at);
    at += lengths_[i];
  }
  return batch;
}

// ---- where they are merged ------------------------------------------------------------------------------------------

PieceMerger::PieceMerger(std::size_t sources, const KeyMaker& maker, const RecordNumbers& numbers, Order& order,
                         const Format& format)
    : pieces_(sources), maker_(maker), numbers_(numbers), order_(order), format_(format) {
  for (std::uint32_t i = 0; i < sources; ++i) pieces_[i].source = i;
}

Status PieceMerger::take(std::size_t piece, PieceBatch from) {
  Piece& to = pieces_[piece];
  if (to.is_over) return nonsense();
  to.is_over = from.is_last;
  if (from.count == 0) return from.body.empty() ? Status() : nonsense();
  Batch batch;
  PIF_TRY(open(from, numbers_.rows(to.source), batch));
  batch.body = std::move(from.body);
  to.batches.push_back(std::move(batch));
  return {};
}

Status PieceMerger::open(const PieceBatch& from, std::uint64_t rows_there, Batch& batch) {
  Bytes records = from.body.span();
  const auto rows = tool::NarrowNumbers::take(records, from.count, tool::Room::kAlways);
  auto lengths = std::optional<tool::NarrowNumbers>(tool::NarrowNumbers());
  if (rows && !format_.is_fixed()) lengths = tool::NarrowNumbers::take(records, from.count, tool::Room::kAlways);
  if (!rows || !lengths) return nonsense();
  if (format_.is_fixed() && records.size() != std::size_t{from.count} * format_.record_length) return nonsense();
  batch.records = records.data();
  batch.elements.reserve(from.count);
  if (!format_.is_fixed()) batch.ends.push_back(0);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < from.count; ++i) {
    const Word row = (*rows)[i], length = format_.is_fixed() ? format_.record_length : (*lengths)[i];
    if (records.size() - at < length || row >= rows_there) return nonsense();
    const Bytes record = records.subspan(at, length);
    if (maker_.is_text()) {
      batch.elements.push_back(order_.chunk(maker_.text_of(record), 0, row));
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
  view.source = piece.source;
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
