#include "split/far_split.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "pif/base/timers.h"

namespace pif::sort {
namespace {

constexpr std::size_t kBatchBytesMax = 512u << 10;
constexpr std::size_t kBatchBytesMin = 16u << 10;
constexpr std::uint32_t kBatchesAhead = 3;        // of one piece, sent before they are merged
constexpr std::uint64_t kUnderWayMax = 2u << 20;  // of row blocks to one LFS

}  // namespace

FarSplit::FarSplit(tool::Worker& worker, tool::Team& team, tool::Input& input, tool::Output& output,
                   const KeyMaker& maker, Order& order, bool unique, std::uint64_t memory)
    : worker_(worker),
      team_(team),
      input_(input),
      output_(output),
      maker_(maker),
      order_(order),
      unique_(unique),
      is_direct_(output.format().is_fixed() && !output.layout().has_parity() && !unique),
      batch_bytes_(kBatchBytesMax) {
  // A share has batches of all pieces ahead, and as many are on their way from here.
  if (memory > 0)
    batch_bytes_ =
        std::clamp<std::size_t>(memory / (2 * kBatchesAhead * worker.width()), kBatchBytesMin, kBatchBytesMax);
}

// ---- the beginning --------------------------------------------------------------------------------------------------

Status FarSplit::open(std::span<const RunView> own) {
  const std::uint32_t shares = worker_.width();
  PIF_TRY_VALUE(sources_, worker_.ranks_on(input_));
  PIF_TRY_VALUE(targets_, worker_.ranks_on(output_));
  PIF_TRY_VALUE(const Splitters splitters, Splitters::choose(team_, own, maker_, order_, shares, unique_));
  std::vector<std::uint64_t> records(shares);
  for (std::uint32_t share = 0; share < shares && input_.is_here(); ++share) {
    std::vector<std::size_t> begin, end;
    for (const RunView& run : own) {
      begin.push_back(splitters.cut(run, share, order_));
      end.push_back(splitters.cut(run, share + 1, order_));
      records[share] += end.back() - begin.back();
    }
    outgoing_.push_back(
        {share, PieceSender(own, std::move(begin), std::move(end), order_, input_.format()), kBatchesAhead});
  }
  PIF_TRY_VALUE(const auto totals, team_.sum(records));
  std::vector<LfsIndex> lfss(sources_.size());
  std::iota(lfss.begin(), lfss.end(), LfsIndex{0});
  merger_.emplace(std::move(lfss), maker_, order_, input_.format());
  if (!is_direct_) {
    PIF_TRY_VALUE(kept_, worker_.scratch());
    return {};
  }
  Range numbers;
  numbers.begin = std::accumulate(totals.begin(), totals.begin() + worker_.rank(), std::uint64_t{0});
  numbers.end = numbers.begin + totals[worker_.rank()];
  blocks_.emplace(output_, numbers);
  under_way_.resize(targets_.size());
  const std::uint64_t all = std::accumulate(totals.begin(), totals.end(), std::uint64_t{0});
  if (output_.is_here()) rows_missing_ = output_.layout().rows(output_.index(), all);
  return {};
}

Status FarSplit::run(std::span<const RunView> own) {
  PIF_TRY(open(own));
  PIF_TRY(exchange());
  PIF_TRY(team_.barrier());
  return is_direct_ ? Status() : put_out_kept();
}

bool FarSplit::is_done() const {
  const bool sent =
      std::all_of(outgoing_.begin(), outgoing_.end(), [](const Outgoing& piece) { return piece.sender.is_done(); });
  const bool written =
      std::all_of(under_way_.begin(), under_way_.end(), [](std::uint64_t bytes) { return bytes == 0; });
  return sent && merger_->is_done() && written && rows_missing_ == 0;
}

Status FarSplit::exchange() {
  team_.begin_talk();
  while (!is_done()) {
    PIF_TRY_VALUE(const bool sent, send_pieces());
    PIF_TRY_VALUE(const bool merged, merge_pieces());
    PIF_TRY_VALUE(const bool put, send_stretches());
    if (is_done()) break;
    PIF_TRY(receive(!sent && !merged && !put));
    worker_.progress(input_.bytes() + put_out_.bytes, 2 * input_.bytes());
  }
  return {};
}

// ---- pieces ---------------------------------------------------------------------------------------------------------

// One batch of each, at most.
Result<bool> FarSplit::send_pieces() {
  bool sent = false;
  for (Outgoing& piece : outgoing_) {
    if (piece.room == 0 || piece.sender.is_done()) continue;
    PieceBatch batch = piece.sender.next(batch_bytes_);
    if (piece.rank != worker_.rank()) worker_.count_sent(batch.body.size());
    const Head head{MessageKind::kPiece, input_.index(), {batch.count, batch.is_last ? 1U : 0U}};
    PIF_TRY(team_.send(piece.rank, head.pack(), std::move(batch.body)));
    --piece.room;
    sent = true;
  }
  return sent;
}

Result<bool> FarSplit::merge_pieces() {
  const bool has_room =
      std::all_of(under_way_.begin(), under_way_.end(), [](std::uint64_t bytes) { return bytes <= kUnderWayMax; });
  if (merger_->is_done() || !merger_->is_ready() || !has_room) return false;
  PIF_TRY(merger_->merge([this](Bytes record) { return put(record); }));
  for (std::uint32_t lfs = 0; lfs < sources_.size(); ++lfs) {
    for (std::uint32_t batches = merger_->take_merged(lfs); batches > 0; --batches)
      PIF_TRY(team_.send(sources_[lfs], Head{MessageKind::kMore, lfs, {}}.pack()));
  }
  return true;
}

Status FarSplit::put(Bytes record) {
  if (!is_direct_) return keep(record);
  blocks_->put(record);
  ++put_out_.records;
  put_out_.bytes += record.size();
  return {};
}

Status FarSplit::keep(Bytes record) {
  if (unique_) {
    if (has_last_ && order_.compare_keys(last_, record) == 0) return {};
    last_.assign(record.begin(), record.end());
    has_last_ = true;
  }
  ++put_out_.records;
  put_out_.bytes += record.size();
  const auto length = static_cast<std::uint32_t>(record.size());
  PIF_TRY(kept_.append(std::as_bytes(std::span(&length, 1))));
  return kept_.append(record);
}

// ---- rows -----------------------------------------------------------------------------------------------------------

Result<bool> FarSplit::send_stretches() {
  if (!blocks_) return false;
  auto& made = blocks_->made();
  const bool any = !made.empty();
  for (; !made.empty(); made.pop_front()) {
    RowBlock& block = made.front();
    const std::uint32_t to = targets_[block.to];
    if (to != worker_.rank()) worker_.count_sent(block.body.size());
    under_way_[block.to] += block.body.size();
    PIF_TRY(team_.send(to, Head{MessageKind::kRowBlock, block.to, {block.first, block.count}}.pack(),
                       std::move(block.body)));
  }
  return any;
}

Status FarSplit::write_stretch(std::uint32_t from, const Head& head, net::Buffer body) {
  const auto [first, count] = std::pair(head.values[0], head.values[1]);
  const std::uint32_t length = output_.format().record_length;
  const bool fits =
      output_.is_made() && head.node == output_.index() && count <= rows_missing_ && body.size() == count * length;
  if (!fits) return fail(Code::kInvalid, fmt::format("worker {} sent rows that do not belong here", from));
  PIF_TRY(output_.writer().write_rows(first, count, {std::as_const(body).data(), length}));
  rows_missing_ -= count;
  return team_.send(from, Head{MessageKind::kWritten, head.node, {body.size()}}.pack());
}

// ---- words ----------------------------------------------------------------------------------------------------------

Status FarSplit::receive(bool may_wait) {
  return team_.receive_some(may_wait ? kWorkerSilenceMax : Duration::zero(),
                            [this](tool::Message word) { return take(std::move(word)); });
}

Status FarSplit::take(tool::Message word) {
  const auto head = Head::unpack(word.head);
  const auto nonsense = [&] {
    return fail(Code::kInvalid, fmt::format("worker {} said something that does not fit", word.from));
  };
  if (!head) return nonsense();
  switch (head->say) {
    case MessageKind::kPiece:
      if (head->node >= sources_.size() || sources_[head->node] != word.from) return nonsense();
      return merger_->take(head->node,
                           {static_cast<std::uint32_t>(head->values[0]), head->values[1] != 0, std::move(word.body)});
    case MessageKind::kMore:
      if (word.from >= outgoing_.size()) return nonsense();
      ++outgoing_[word.from].room;
      return {};
    case MessageKind::kRowBlock: return write_stretch(word.from, *head, std::move(word.body));
    case MessageKind::kWritten:
      if (head->node >= under_way_.size() || under_way_[head->node] < head->values[0]) return nonsense();
      under_way_[head->node] -= head->values[0];
      return {};
    default: return nonsense();
  }
}

// ---- what was kept --------------------------------------------------------------------------------------------------

Status FarSplit::put_out_kept() {
  PIF_TRY_VALUE(const auto all, team_.all_gather(fmt::format("{} {}", put_out_.records, put_out_.bytes)));
  FileLength file_length;
  std::uint64_t number = 0;  // of this share's first record
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    const auto blank = all[rank].find(' ');
    if (rank < worker_.rank()) number += std::stoull(all[rank]);
    file_length.records += std::stoull(all[rank]);
    file_length.bytes += std::stoull(all[rank].substr(blank + 1));
  }
  PIF_TRY(kept_.map());
  Bytes rest = kept_.bytes();
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, team_, output_, file_length, {.share_memory = false}));
  team_.begin_talk();
  while (!rest.empty() || !out.is_done()) {
    while (!rest.empty() && out.has_room()) {
      std::uint32_t length = 0;
      std::memcpy(&length, rest.data(), sizeof length);
      out.put(number++, rest.subspan(sizeof length, length));
      rest = rest.subspan(sizeof length + length);
    }
    out.flush();
    PIF_TRY(out.go_on(!rest.empty()));
  }
  return team_.barrier();
}

}  // namespace pif::sort
