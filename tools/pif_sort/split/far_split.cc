#include "split/far_split.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "pif/base/packed.h"
#include "pif/tool/message.h"

namespace pif::sort {
namespace {

constexpr std::size_t kBatchBytesMax = 512u << 10;
constexpr std::size_t kBatchBytesMin = 16u << 10;
constexpr std::uint32_t kBatchesAhead = 3;        // of one piece, sent before they are merged
constexpr std::uint64_t kUnderWayMax = 2u << 20;  // of row blocks to one LFS
constexpr std::uint32_t kPieceChannel = 1, kBlockChannel = 2;

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
      is_direct_(output.format().is_fixed() && output.layout().is_even() && !unique),
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
  PIF_TRY_VALUE(const Splitters splitters,
                Splitters::choose(team_, own, maker_, order_, shares, unique_, input_.file_length().records));
  std::vector<std::uint64_t> records(shares);
  for (std::uint32_t share = 0; share < shares && input_.is_here(); ++share) {
    std::vector<std::size_t> begin, end;
    for (const RunView& run : own) {
      begin.push_back(splitters.cut(run, share, order_));
      end.push_back(splitters.cut(run, share + 1, order_));
      records[share] += end.back() - begin.back();
    }
    outgoing_.push_back({share, PieceSender(own, std::move(begin), std::move(end), order_, input_.format())});
  }
  PIF_TRY_VALUE(const auto totals, team_.sum(records));
  const std::uint64_t all = std::accumulate(totals.begin(), totals.end(), std::uint64_t{0});
  if (all != input_.file_length().records)
    return fail(Code::kCorrupt, fmt::format("the workers have {} records of {}", all, input_.file_length().records));
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
  if (output_.is_here()) rows_ = rows_missing_ = output_.layout().rows(output_.index(), all);
  return {};
}

Status FarSplit::run(std::span<const RunView> own) {
  PIF_TRY(open(own));
  PIF_TRY(exchange());
  return is_direct_ ? Status() : put_out_kept();
}

bool FarSplit::is_done() const {
  const bool sent =
      std::all_of(outgoing_.begin(), outgoing_.end(), [](const Outgoing& piece) { return piece.sender.is_done(); });
  return sent && merger_->is_done() && block_channel_->queued_bytes() == 0 && rows_missing_ == 0;
}

void FarSplit::join(tool::Talk& talk) {
  tool::ChannelOptions pieces;
  pieces.unit = tool::Credit::Unit::kMessages;
  pieces.window = kBatchesAhead;
  pieces.is_kept = true;  // until they are merged
  piece_channel_.emplace(talk, kPieceChannel, std::move(pieces),
                         [this](tool::Channel<Piece>::Item item) { return take_piece(std::move(item)); });
  tool::ChannelOptions blocks;
  blocks.window = kUnderWayMax;
  block_channel_.emplace(talk, kBlockChannel, std::move(blocks),
                         [this](const tool::Channel<Block>::Item& item) { return write_block(item); });
}

Status FarSplit::exchange() {
  tool::Talk talk(team_);
  join(talk);
  while (!is_done()) {
    PIF_TRY_VALUE(const bool sent, send_pieces());
    PIF_TRY_VALUE(const bool merged, merge_pieces());
    PIF_TRY_VALUE(const bool put, send_row_blocks());
    if (is_done()) break;
    PIF_TRY(talk.go_on(!sent && !merged && !put));
    worker_.progress(input_.bytes() + put_out_.bytes, 2 * input_.bytes());
  }
  return talk.end();
}

// ---- pieces ---------------------------------------------------------------------------------------------------------

// One batch of each, at most.
Result<bool> FarSplit::send_pieces() {
  bool sent = false;
  for (Outgoing& piece : outgoing_) {
    if (piece.sender.is_done() || !piece_channel_->credit(piece.rank).allows(batch_bytes_)) continue;
    PieceBatch batch = piece.sender.next(batch_bytes_);
    if (piece.rank != worker_.rank()) worker_.count_sent(batch.body.size());
    PIF_TRY(piece_channel_->send(piece.rank, {batch.count, batch.is_last}, std::move(batch.body)));
    sent = true;
  }
  return sent;
}

// Not while row blocks wait for room.
Result<bool> FarSplit::merge_pieces() {
  if (merger_->is_done() || !merger_->is_ready() || block_channel_->queued_bytes() > 0) return false;
  PIF_TRY(merger_->merge([this](Bytes record) { return put(record); }));
  for (std::uint32_t lfs = 0; lfs < sources_.size(); ++lfs)
    PIF_TRY(piece_channel_->settle(sources_[lfs], merger_->take_merged(lfs)));
  return true;
}

Status FarSplit::take_piece(tool::Channel<Piece>::Item item) {
  const auto found = std::find(sources_.begin(), sources_.end(), item.from);
  if (found == sources_.end()) return fail(Code::kInvalid, "records, of which it has none");
  const auto lfs = static_cast<std::size_t>(found - sources_.begin());
  PIF_TRY(merger_->take(lfs, {item.head.count, item.head.is_last, std::move(item.body)}));
  // Of an empty one nothing is there to be merged.
  return item.head.count == 0 ? piece_channel_->settle(item.from, 1) : Status();
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
  std::array<std::byte, sizeof length> head;
  pack_number(length, head.data());
  PIF_TRY(kept_.append(head));
  return kept_.append(record);
}

// ---- rows -----------------------------------------------------------------------------------------------------------

Result<bool> FarSplit::send_row_blocks() {
  if (!blocks_) return false;
  auto& made = blocks_->made();
  const bool any = !made.empty();
  for (; !made.empty(); made.pop_front()) {
    RowBlock& block = made.front();
    const std::uint32_t to = targets_[block.to];
    if (to != worker_.rank()) worker_.count_sent(block.body.size());
    PIF_TRY(block_channel_->send(to, {block.first, block.count}, std::move(block.body)));
  }
  return any;
}

Status FarSplit::write_block(const tool::Channel<Block>::Item& item) {
  const std::uint64_t first = item.head.first, count = item.head.count;
  const std::uint32_t length = output_.format().record_length;
  const bool fits = is_direct_ && output_.is_made() && count <= rows_missing_ && first <= rows_ - count &&
                    item.body.size() == count * length;
  if (!fits) return fail(Code::kInvalid, fmt::format("{} rows from {}, which do not belong here", count, first));
  PIF_TRY(output_.sink().write_rows(first, count, {item.body.data(), length}));
  rows_missing_ -= count;
  return {};
}

// ---- what was kept --------------------------------------------------------------------------------------------------

Status FarSplit::put_out_kept() {
  PIF_TRY_VALUE(const auto all, team_.all_gather_numbers({put_out_.records, put_out_.bytes}));
  const FileLength& input = input_.file_length();
  FileLength file_length;
  std::uint64_t number = 0;  // of this share's first record
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] > input.records - file_length.records || all[rank][1] > input.bytes + 1 - file_length.bytes)
      return tool::sent_nonsense(rank, fmt::format("a share of {} records and {} bytes", all[rank][0], all[rank][1]));
    if (rank < worker_.rank()) number += all[rank][0];
    file_length.records += all[rank][0];
    file_length.bytes += all[rank][1];
  }
  PIF_TRY(kept_.map());
  Bytes rest = kept_.bytes();
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, team_, output_, file_length, {.share_memory = false}));
  return out.fill([&]() -> Result<bool> {
    while (!rest.empty() && out.has_room()) {
      const auto length = PackedNumbers<std::uint32_t>::take(rest, 1);
      if (!length || (*length)[0] > rest.size()) return fail(Code::kInternal, "the kept records end too soon");
      out.put(number++, rest.first((*length)[0]));
      rest = rest.subspan((*length)[0]);
    }
    return !rest.empty();
  });
}

}  // namespace pif::sort
