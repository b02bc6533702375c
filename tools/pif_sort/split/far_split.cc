#include "split/far_split.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "pif/base/packed.h"
#include "pif/tool/message.h"
#include "pif/tool/read_ahead.h"
#include "pif/tool/threads.h"

namespace pif::sort {
namespace {

constexpr std::size_t kBatchBytesMax = 512u << 10;
constexpr std::size_t kBatchBytesMin = 16u << 10;
constexpr std::size_t kAheadBytes = 96u << 20;    // of all batches that a worker may have, where memory is not short
constexpr std::uint32_t kBatchesAhead = 3;        // of one piece, sent before they are merged
constexpr std::uint64_t kUnderWayMax = 2u << 20;  // of row blocks to one LFS
constexpr std::uint32_t kFirstPieceChannel = 1, kBlockChannel = 2;  // pieces of a worker's other shares: 3, 5, ..

}  // namespace

// What one thread merges.
class FarSplit::Share {
 public:
  // unique: of records with equal keys only the first. most: so many go on, the others are dropped.
  Share(const KeyMaker& maker, const Inputs& inputs, bool unique, std::uint64_t most)
      : unique_(unique),
        most_(most),
        order_(maker, inputs.numbers()),
        merger_(inputs.ranks().size(), maker, inputs.numbers(), order_, inputs.format()) {}

  // Where its records go: to the rows of these numbers, or into a file, of each its length (32 bits) and its bytes.
  void open(const tool::Output& output, Range numbers) { blocks_.emplace(output, numbers); }
  void open(tool::Scratch file) { kept_ = std::move(file); }
  // Into the file, before what is merged, and beside the most of that.
  [[nodiscard]] Status put_in_front(Bytes record);
  // As far as records have come. Touches nothing that another share has.
  [[nodiscard]] Status merge() {
    return merger_.merge([this](Bytes record) { return put(record); });
  }
  PieceMerger& merger() { return merger_; }
  std::deque<RowBlock>* made() { return blocks_ ? &blocks_->made() : nullptr; }
  tool::Scratch& kept() { return kept_; }
  const FileLength& put_out() const { return put_out_; }

 private:
  [[nodiscard]] Status put(Bytes record);
  [[nodiscard]] Status keep(Bytes record);

  bool unique_;
  std::uint64_t most_;
  Order order_;
  PieceMerger merger_;
  std::optional<RowBlockMaker> blocks_;
  std::vector<std::byte> last_;  // unique: the record before
  bool has_last_ = false;
  tool::Scratch kept_;
  FileLength put_out_;
};

Status FarSplit::Share::put_in_front(Bytes record) {
  ++most_;
  ++put_out_.records;
  put_out_.bytes += record.size();
  return keep(record);
}

Status FarSplit::Share::put(Bytes record) {
  if (put_out_.records == most_) return {};
  if (unique_) {
    if (has_last_ && order_.compare_keys(last_, record) == 0) return {};
    last_.assign(record.begin(), record.end());
    has_last_ = true;
  }
  ++put_out_.records;
  put_out_.bytes += record.size();
  if (!blocks_) return keep(record);
  blocks_->put(record);
  return {};
}

Status FarSplit::Share::keep(Bytes record) {
  const auto length = static_cast<std::uint32_t>(record.size());
  std::array<std::byte, sizeof length> head;
  pack_number(length, head.data());
  PIF_TRY(kept_.append(head));
  return kept_.append(record);
}

FarSplit::FarSplit(tool::Worker& worker, tool::Team& team, Inputs& inputs, tool::Output& output, const KeyMaker& maker,
                   const SplitOptions& options)
    : worker_(worker),
      team_(team),
      inputs_(inputs),
      output_(output),
      maker_(maker),
      options_(options),
      is_direct_(output.format().is_fixed() && output.layout().is_even() && !options.unique && options.header.empty()),
      batch_bytes_(options.memory > 0 ? std::min<std::size_t>(options.memory / 2, kAheadBytes) : kAheadBytes) {}

FarSplit::~FarSplit() = default;

// ---- the beginning --------------------------------------------------------------------------------------------------

Status FarSplit::open(std::span<RunView> own) {
  sources_ = inputs_.ranks();
  PIF_TRY_VALUE(targets_, worker_.ranks_on(output_));
  const std::uint64_t sources = sources_.size();
  const std::uint64_t fit = batch_bytes_ / (2 * kBatchesAhead * kBatchBytesMin * sources);  // shares with small batches
  PIF_TRY_VALUE(const auto threads, team_.all_gather_numbers({std::clamp<std::uint64_t>(fit, 1, worker_.threads())}));
  first_shares_.push_back(0);
  for (std::uint32_t rank = 0; rank < threads.size(); ++rank) {
    if (threads[rank][0] == 0 || threads[rank][0] > tool::kThreadsMax)
      return tool::sent_nonsense(rank, fmt::format("{} threads", threads[rank][0]));
    first_shares_.push_back(first_shares_.back() + static_cast<std::uint32_t>(threads[rank][0]));
  }
  const std::uint32_t shares = first_shares_.back();
  if (options_.memory > 0) share_memory(own, options_.memory, shares);
  // A worker has batches of all pieces of its shares, and others of the pieces that it sends are on their way.
  std::uint64_t most = shares;
  for (const auto& each : threads) most = std::max(most, each[0] * sources);
  batch_bytes_ = std::clamp(batch_bytes_ / (kBatchesAhead * most), kBatchBytesMin, kBatchBytesMax);
  Order order(maker_, inputs_.numbers());
  PIF_TRY_VALUE(const Splitters splitters, Splitters::choose(team_, own, maker_, order, shares, options_.unique,
                                                             inputs_.file_length().records, worker_.width()));
  std::vector<std::vector<std::size_t>> cuts(shares + 1, std::vector<std::size_t>(own.size()));
  const std::size_t tasks = std::min<std::size_t>(worker_.threads(), own.size());
  PIF_TRY(worker_.run_tasks(tasks, [&](std::size_t task) -> Status {
    for (std::size_t run = task; run < own.size(); run += tasks)
      for (std::uint32_t share = 0; share <= shares; ++share) cuts[share][run] = splitters.cut(own[run], share, order);
    return {};
  }));
  std::vector<std::uint64_t> records(shares);
  for (std::uint32_t rank = 0; rank < worker_.width() && inputs_.is_here(); ++rank) {
    for (std::uint32_t share = first_shares_[rank]; share < first_shares_[rank + 1]; ++share) {
      for (std::size_t run = 0; run < own.size(); ++run) records[share] += cuts[share + 1][run] - cuts[share][run];
      outgoing_.push_back(std::make_unique<Outgoing>(rank, share - first_shares_[rank], maker_, inputs_, own,
                                                     cuts[share], cuts[share + 1]));
    }
  }
  return open_shares(records);
}

// records: that this worker has, by share.
Status FarSplit::open_shares(const std::vector<std::uint64_t>& records) {
  PIF_TRY_VALUE(const auto totals, team_.sum(records));
  const std::uint64_t all = std::accumulate(totals.begin(), totals.end(), std::uint64_t{0});
  const std::uint64_t there = inputs_.file_length().records;
  if (all > there || (all < there && options_.first.records == 0))
    return fail(Code::kCorrupt, fmt::format("the workers have {} records of {}", all, there));
  const std::uint64_t most = options_.sorted_max(all);
  const std::uint32_t first = first_shares_[worker_.rank()], end = first_shares_[worker_.rank() + 1];
  Range numbers;
  numbers.end = std::accumulate(totals.begin(), totals.begin() + first, std::uint64_t{0});
  for (std::uint32_t share = first; share < end; ++share) {
    numbers = {numbers.end, numbers.end + totals[share]};
    // What is dropped before it is not known with `unique`.
    const Range out =
        options_.unique ? Range{0, most} : Range{std::min(numbers.begin, most), std::min(numbers.end, most)};
    shares_.push_back(std::make_unique<Share>(maker_, inputs_, options_.unique, out.size()));
    if (is_direct_) {
      shares_.back()->open(output_, out);
    } else {
      PIF_TRY_VALUE(auto file, worker_.scratch());
      shares_.back()->open(std::move(file));
    }
  }
  for (std::size_t i = 0; i < options_.header.size() && worker_.rank() == 0; ++i)
    PIF_TRY(shares_[0]->put_in_front(std::as_bytes(std::span(options_.header[i]))));
  if (is_direct_ && output_.is_here()) rows_ = rows_missing_ = output_.layout().rows(output_.index(), most);
  return {};
}

Status FarSplit::run(std::span<RunView> own) {
  PIF_TRY(open(own));
  PIF_TRY(exchange());
  for (const auto& share : shares_) {
    put_out_.records += share->put_out().records;
    put_out_.bytes += share->put_out().bytes;
  }
  return is_direct_ ? Status() : put_out_kept();
}

bool FarSplit::is_done() const {
  const bool sent =
      std::all_of(outgoing_.begin(), outgoing_.end(), [](const auto& piece) { return piece->sender.is_done(); });
  const bool merged =
      std::all_of(shares_.begin(), shares_.end(), [](const auto& share) { return share->merger().is_done(); });
  return sent && merged && block_channel_->queued_bytes() == 0 && rows_missing_ == 0;
}

void FarSplit::join(tool::Talk& talk) {
  // Each share has credit of its own: else one might wait for what others' batches keep from coming.
  std::uint32_t most = 0;
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank)
    most = std::max(most, first_shares_[rank + 1] - first_shares_[rank]);
  for (std::uint32_t share = 0; share < most; ++share) {
    tool::ChannelOptions pieces;
    pieces.unit = tool::Credit::Unit::kMessages;
    pieces.window = kBatchesAhead;
    pieces.is_kept = true;  // until they are merged
    piece_channels_.push_back(std::make_unique<tool::Channel<Piece>>(
        talk, kFirstPieceChannel + 2 * share, std::move(pieces),
        [this, share](tool::Channel<Piece>::Item item) { return take_piece(share, std::move(item)); }));
  }
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
    std::uint64_t bytes = 0;
    for (const auto& share : shares_) bytes += share->put_out().bytes;
    worker_.progress(inputs_.bytes() + bytes, 2 * inputs_.bytes());
  }
  return talk.end();
}

// ---- pieces ---------------------------------------------------------------------------------------------------------

// One batch of each, at most.
Result<bool> FarSplit::send_pieces() {
  std::vector<Outgoing*> next;
  for (const auto& piece : outgoing_) {
    const bool may_go = piece_channels_[piece->share]->credit(piece->rank).allows(batch_bytes_);
    if (!piece->sender.is_done() && may_go) next.push_back(piece.get());
  }
  const std::size_t threads = std::min<std::size_t>(worker_.threads(), next.size());
  PIF_TRY(worker_.run_tasks(threads, [&](std::size_t thread) -> Status {
    for (std::size_t i = thread; i < next.size(); i += threads) next[i]->batch = next[i]->sender.next(batch_bytes_);
    return {};
  }));
  for (Outgoing* const piece : next) {
    PieceBatch batch = *std::exchange(piece->batch, std::nullopt);
    if (piece->rank != worker_.rank()) worker_.count_sent(batch.body.size());
    PIF_TRY(piece_channels_[piece->share]->send(piece->rank, {batch.count, batch.is_last}, std::move(batch.body)));
  }
  return !next.empty();
}

// Not while row blocks wait for room.
Result<bool> FarSplit::merge_pieces() {
  if (block_channel_->queued_bytes() > 0) return false;
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    PieceMerger& merger = shares_[i]->merger();
    if (!merger.is_done() && merger.is_ready()) ready.push_back(i);
  }
  PIF_TRY(worker_.run_tasks(ready.size(), [&](std::size_t i) { return shares_[ready[i]]->merge(); }));
  for (const std::size_t share : ready) {
    for (std::uint32_t source = 0; source < sources_.size(); ++source)
      PIF_TRY(piece_channels_[share]->settle(sources_[source], shares_[share]->merger().take_merged(source)));
  }
  return !ready.empty();
}

Status FarSplit::take_piece(std::size_t share, tool::Channel<Piece>::Item item) {
  const auto found = std::find(sources_.begin(), sources_.end(), item.from);
  if (found == sources_.end() || share >= shares_.size())
    return fail(Code::kInvalid, "records, of which it has none for this worker");
  const auto source = static_cast<std::size_t>(found - sources_.begin());
  PIF_TRY(shares_[share]->merger().take(source, {item.head.count, item.head.is_last, std::move(item.body)}));
  // Of an empty one nothing is there to be merged.
  return item.head.count == 0 ? piece_channels_[share]->settle(item.from, 1) : Status();
}

// ---- rows -----------------------------------------------------------------------------------------------------------

Result<bool> FarSplit::send_row_blocks() {
  bool any = false;
  for (const auto& share : shares_) {
    auto* const made = share->made();
    for (; made != nullptr && !made->empty(); made->pop_front()) {
      RowBlock& block = made->front();
      const std::uint32_t to = targets_[block.to];
      if (to != worker_.rank()) worker_.count_sent(block.body.size());
      PIF_TRY(block_channel_->send(to, {block.first, block.count}, std::move(block.body)));
      any = true;
    }
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
  FileLength file_length;
  std::uint64_t number = 0;  // of this share's first record
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] > inputs_.file_length().records + options_.header.size() - file_length.records ||
        all[rank][1] > inputs_.bytes_max() - file_length.bytes)
      return tool::sent_nonsense(rank, fmt::format("a share of {} records and {} bytes", all[rank][0], all[rank][1]));
    if (rank < worker_.rank()) number += all[rank][0];
    file_length.records += all[rank][0];
    file_length.bytes += all[rank][1];
  }
  file_length.records = options_.put_out_max(file_length.records);
  if (output_.format().is_fixed()) file_length.bytes = file_length.records * output_.format().record_length;
  put_out_ = {};
  for (const auto& share : shares_) PIF_TRY(share->kept().map());
  std::size_t share = 0;
  Bytes rest = shares_[0]->kept().bytes();
  tool::ReadInOrder ahead(rest);
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, team_, output_, file_length, {.share_memory = false}));
  return out.fill([&]() -> Result<bool> {
    while (out.has_room()) {
      while (rest.empty() && share + 1 < shares_.size())
        ahead = tool::ReadInOrder(rest = shares_[++share]->kept().bytes());
      if (rest.empty() || number >= file_length.records) return false;
      ahead.reach(rest.data());
      const auto length = PackedNumbers<std::uint32_t>::take(rest, 1);
      if (!length || (*length)[0] > rest.size()) return fail(Code::kInternal, "the kept records end too soon");
      out.put(number++, rest.first((*length)[0]));
      put_out_ = {put_out_.records + 1, put_out_.bytes + (*length)[0]};
      rest = rest.subspan((*length)[0]);
    }
    return true;
  });
}

}  // namespace pif::sort
