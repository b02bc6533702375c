#include "token/token_sort.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/timers.h"
#include "pif/tool/message.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kWindowBlocks = 4;          // of a part in memory: one deadlocks not, two overlap
constexpr std::uint64_t kUnderWayBytes = 4u << 20;  // to one part, by one worker, where it goes by message

void add_node(std::vector<TreeNode>& tree, std::uint32_t at) {
  const TreeNode node = tree[at];
  if (node.width() < 2) return;
  const std::uint32_t middle = node.begin + (node.width() + 1) / 2;
  for (const unsigned side : {0U, 1U}) {
    tree[at].children[side] = static_cast<std::uint32_t>(tree.size());
    tree.push_back({side == 0 ? node.begin : middle, side == 0 ? middle : node.end, node.depth + 1, {0, 0}});
    add_node(tree, tree[at].children[side]);
  }
}

}  // namespace

std::vector<TreeNode> make_tree(std::uint32_t width) {
  std::vector<TreeNode> tree = {{0, width, 0, {0, 0}}};
  add_node(tree, 0);
  return tree;
}

// ---- where merged records go ----------------------------------------------------------------------------------------

// The parts of a sub-file.
class TokenSort::ToPart final : public Outlet {
 public:
  ToPart(tool::Worker& worker, tool::Team& team, std::uint32_t node, std::vector<std::uint32_t> ranks,
         std::uint64_t records, const PartShape& shape, tool::NumberedLimits limits)
      : worker_(worker),
        team_(team),
        node_(node),
        ranks_(std::move(ranks)),
        records_(records),
        shape_(shape),
        sender_(static_cast<std::uint32_t>(ranks_.size()), limits,
                [placement =
                     Placement(static_cast<std::uint32_t>(ranks_.size()), shape.block_records)](std::uint64_t number) {
                  const Cell cell = placement.locate(number);
                  return tool::NumberedPlace{cell.lfs, cell.row};
                }) {}
  // Memories of the parts, by rank.
  void share(std::vector<Area> memories) {
    memories_ = std::move(memories);
    for (std::uint32_t to = 0; to < ranks_.size(); ++to) sender_.give_memory(to, memories_[ranks_[to]].space());
  }

  void put(std::uint64_t number, const std::uint64_t& original, Bytes record) override {
    sender_.put(number, std::as_bytes(std::span(&original, 1)), record);
  }
  void flush() override { sender_.flush(); }
  std::uint64_t queued_bytes() const override { return sender_.queued_bytes(); }

  // What the reader of a part says of it.
  [[nodiscard]] Status settle(std::uint32_t from, Row row) {
    const auto found = std::find(ranks_.begin(), ranks_.end(), from);
    const auto index = static_cast<std::uint32_t>(found - ranks_.begin());
    const Placement placement(static_cast<std::uint32_t>(ranks_.size()), shape_.block_records);
    // In whole blocks: the last one may be shorter.
    if (found == ranks_.end() || row >= placement.rows(index, records_) + shape_.block_records)
      return tool::sent_nonsense(from, fmt::format("that row {} of its part has room, which it does not have", row));
    sender_.settle(index, row);
    return {};
  }
  Result<bool> step() {
    return sender_.step([this](tool::NumberedMessage message) { return send(std::move(message)); });
  }

 private:
  Status send(tool::NumberedMessage records) {
    const std::uint32_t rank = ranks_[records.to];
    message::MergeMessage message;
    message.set_node(node_);
    message.mutable_rows()->set_first(records.first);
    message.mutable_rows()->set_count(records.count);
    message.mutable_rows()->set_placed(!memories_.empty());
    if (rank != worker_.rank()) worker_.count_sent(records.record_bytes);
    if (memories_.empty()) return team_.send(rank, message.SerializeAsString(), std::move(records.body));
    PIF_TRY(tool::place_records(records, shape_.record_length, memories_[rank].space()));
    return team_.send(rank, message.SerializeAsString());
  }

  tool::Worker& worker_;
  tool::Team& team_;
  std::uint32_t node_;
  std::vector<std::uint32_t> ranks_;
  std::uint64_t records_;  // of the sub-file
  PartShape shape_;
  tool::NumberedSender sender_;
  std::vector<Area> memories_;
};

class TokenSort::ToFile final : public Outlet {
 public:
  ToFile(tool::OrderedOutput& out, FileLength& shipped) : out_(out), shipped_(shipped) {}
  void put(std::uint64_t number, const std::uint64_t&, Bytes record) override {
    out_.put(number, record);
    ++shipped_.records;
    shipped_.bytes += record.size();
  }
  void flush() override { out_.flush(); }
  std::uint64_t queued_bytes() const override { return out_.queued_bytes(); }

 private:
  tool::OrderedOutput& out_;
  FileLength& shipped_;
};

// ---- the tree -------------------------------------------------------------------------------------------------------

TokenSort::TokenSort(tool::Worker& worker, tool::Team& team, const TokenOptions& options, const KeyMaker& maker,
                     tool::Output& output, std::vector<std::uint32_t> ranks, std::vector<std::uint64_t> records)
    : worker_(worker),
      team_(team),
      options_(options),
      maker_(maker),
      output_(output),
      ranks_(std::move(ranks)),
      records_(std::move(records)),
      tree_(make_tree(static_cast<std::uint32_t>(ranks_.size()))) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), worker.rank());
  if (found != ranks_.end()) index_ = static_cast<std::uint32_t>(found - ranks_.begin());
}

std::uint64_t TokenSort::records_of(const TreeNode& node) const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = node.begin; i < node.end; ++i) sum += records_[i];
  return sum;
}

std::vector<std::uint32_t> TokenSort::ranks_of(const TreeNode& node) const {
  return {ranks_.begin() + node.begin, ranks_.begin() + node.end};
}

PartShape TokenSort::part_shape(const TreeNode& node) const {
  PartShape shape;
  shape.block_records = options_.block_records;
  shape.rows = Placement(node.width(), shape.block_records).rows(*index_ - node.begin, records_of(node));
  const Format& format = output_.format();
  shape.in_memory = options_.in_memory;
  shape.window_blocks = options_.pipelined ? kWindowBlocks : 0;
  shape.record_length = format.is_fixed() ? format.record_length + static_cast<std::uint32_t>(kNumberBytes) : 0;
  return shape;
}

// Everybody's part of the sub-files that merges of this depth make: each worker has one at most.
Status TokenSort::share_part(std::uint32_t depth) {
  if (!options_.share_memory || !output_.format().is_fixed()) return {};
  Live* const live = live_.empty() || tree_[live_.back().node].depth != depth ? nullptr : &live_.back();
  const Area none;
  const Area* const own = live == nullptr ? &none : parts_.at(live->node)->memory();
  PIF_TRY_VALUE(auto all, pif::sort::share(team_, *own, true));
  if (live != nullptr) live->to_part->share(std::move(all));
  return {};
}

// This worker's part in the merge that makes `node`.
Status TokenSort::make_merge(std::uint32_t node) {
  const TreeNode& at = tree_[node];
  Live live;
  live.node = node;
  if (node == 0) {
    live.outlet = std::make_unique<ToFile>(*out_, shipped_);
  } else {
    const PartShape part = part_shape(at);
    const bool is_shared = options_.share_memory && output_.format().is_fixed();
    PIF_TRY_VALUE(parts_[node], make_part(worker_, part, BlockMaker(maker_, output_.format()), is_shared));
    tool::NumberedLimits limits;
    limits.fixed_length = output_.format().is_fixed();
    if (options_.pipelined) limits.window_rows = kWindowBlocks * options_.block_records;
    limits.piece_rows = options_.block_records;
    if (!options_.pipelined && !options_.share_memory) limits.share_bytes = kUnderWayBytes;
    auto outlet = std::make_unique<ToPart>(worker_, team_, node, ranks_of(at), records_of(at), part, limits);
    live.to_part = outlet.get();
    live.outlet = std::move(outlet);
  }
  MergeShape shape{node, {}, options_.block_records};
  unsigned side = 0;
  if (at.is_leaf()) {  // the only one
    shape.sides[0] = {ranks_of(at), records_of(at)};
  } else {
    for (const unsigned each : {0U, 1U})
      shape.sides[each] = {ranks_of(tree_[at.children[each]]), records_of(tree_[at.children[each]])};
    side = *index_ < tree_[at.children[0]].end ? 0 : 1;
    live.child = at.children[side];
  }
  const std::uint32_t place = *index_ - tree_[live.child].begin;
  Part& read = *parts_.at(live.child);
  if (options_.figure) {
    live.merge = std::make_unique<FigureMerge>(team_, std::move(shape), side, place, read, *live.outlet);
  } else {
    live.merge = std::make_unique<BatchedMerge>(team_, std::move(shape), side, place, read, *live.outlet);
  }
  live_.push_back(std::move(live));
  return {};
}

Status TokenSort::open_output() {
  FileLength file_length;
  for (const std::uint64_t records : records_) file_length.records += records;
  file_length.bytes = file_length.records * output_.format().record_length;  // what counts of it, with fixed records
  PIF_TRY_VALUE(auto out, tool::OrderedOutput::open(worker_, team_, output_, file_length,
                                                    {.share_memory = options_.share_memory}));
  out_.emplace(std::move(out));
  return {};
}

// ---- passes ---------------------------------------------------------------------------------------------------------

// The merges of this depth that this worker takes part in: one, or none.
Status TokenSort::begin(std::uint32_t depth) {
  if (depth == 0) PIF_TRY(open_output());
  for (std::uint32_t node = 0; index_ && node < tree_.size(); ++node) {
    const TreeNode& at = tree_[node];
    const bool merged = at.depth == depth && at.begin <= *index_ && *index_ < at.end && (!at.is_leaf() || node == 0);
    if (merged) PIF_TRY(make_merge(node));
  }
  return depth == 0 ? Status() : share_part(depth);
}

Status TokenSort::run(std::vector<RunView> runs, Order& order) {
  std::uint32_t depth = 0;
  for (std::uint32_t node = 0; node < tree_.size(); ++node) {
    const TreeNode& at = tree_[node];
    if (!at.is_leaf()) depth = std::max(depth, at.depth);
    if (at.is_leaf() && index_ == at.begin) {
      parts_[node] = std::make_unique<OwnPart>(std::move(runs), order, BlockMaker(maker_, output_.format()),
                                               options_.block_records);
    }
  }
  if (!options_.pipelined) {
    for (std::uint32_t level = depth + 1; level-- > 0;) {
      PIF_TRY(begin(level));
      PIF_TRY(finish());
    }
    return {};
  }
  for (std::uint32_t level = depth + 1; level-- > 0;) PIF_TRY(begin(level));
  return finish();
}

// Everything that has begun, to its end.
Status TokenSort::finish() {
  team_.begin_talk();
  while (true) {
    PIF_TRY_VALUE(const bool moved, advance());
    if (is_done()) break;
    PIF_TRY(receive(!moved));
    worker_.progress(shipped_.records, records_of(tree_[0]));
  }
  for (const Live& live : live_) {
    counts_.add(live.merge->counts());
    parts_.erase(live.child);
  }
  live_.clear();
  return team_.barrier();
}

Result<bool> TokenSort::advance() {
  bool moved = false;
  for (Live& live : live_) {
    PIF_TRY_VALUE(const bool merged, live.merge->advance());
    moved = moved || merged;
    if (live.to_part != nullptr) {
      PIF_TRY_VALUE(const bool sent, live.to_part->step());
      moved = moved || sent;
    }
    PIF_TRY(tell_settled(live));
  }
  if (!out_) return moved;
  PIF_TRY_VALUE(const bool sent, out_->step());
  return moved || sent;
}

// Blocks of the part that is read here were dropped, or blocks of one that is filled have come: those who fill it may
// go on.
Status TokenSort::tell_settled(Live& live) {
  const std::uint32_t node = options_.pipelined ? live.child : live.node;
  if (node == 0 || tree_[node].is_leaf() || (!options_.pipelined && options_.share_memory)) return {};
  const Part& part = *parts_.at(node);
  const Row settled = options_.pipelined ? part.settled() : part.arrived();
  if (settled == live.settled) return {};
  live.settled = settled;
  message::MergeMessage message;
  message.set_node(node);
  message.mutable_settled()->set_row(settled);
  for (const std::uint32_t rank : ranks_of(tree_[node])) PIF_TRY(team_.send(rank, message.SerializeAsString()));
  return {};
}

bool TokenSort::is_done() const {
  const bool merged = std::all_of(live_.begin(), live_.end(), [](const Live& live) {
    return live.merge->is_done() && live.outlet->queued_bytes() == 0;
  });
  const bool received =
      std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part.second->is_complete(); });
  return merged && received && (!out_ || out_->is_done());
}

// ---- words ----------------------------------------------------------------------------------------------------------

Status TokenSort::receive(bool may_wait) {
  return team_.receive_some(may_wait ? kWorkerSilenceMax : Duration::zero(),
                            [this](tool::Message word) { return take(std::move(word)); });
}

TokenSort::Live* TokenSort::find(std::uint32_t node) {
  const auto found = std::find_if(live_.begin(), live_.end(), [node](const Live& live) { return live.node == node; });
  return found == live_.end() ? nullptr : &*found;
}

Status TokenSort::take(tool::Message word) {
  if (out_ && tool::OrderedOutput::is_own(word)) return out_->take(std::move(word));
  PIF_TRY_VALUE(const auto message, tool::parse_message<message::MergeMessage>(word.head, word.from));
  const auto does_not_fit = [&] {
    return tool::sent_nonsense(word.from,
                               fmt::format("something of merge {}, which it has no part in", message.node()));
  };
  if (message.has_rows()) {
    const auto part = parts_.find(message.node());
    if (part == parts_.end()) return does_not_fit();
    const auto& rows = message.rows();
    const auto taken = part->second->accept(rows.first(), rows.count(), std::move(word.body), rows.placed());
    return taken ? taken : tool::sent_wrong(word.from, taken.error());
  }
  Live* const live = find(message.node());
  if (live == nullptr) return does_not_fit();
  if (!message.has_settled()) return live->merge->take(word.from, message, std::as_const(word.body).span());
  return live->to_part == nullptr ? does_not_fit() : live->to_part->settle(word.from, message.settled().row());
}

}  // namespace pif::sort
