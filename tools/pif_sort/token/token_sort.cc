#include "token/token_sort.h"

#include <algorithm>

#include <fmt/format.h>

#include "token/batched_merge.h"
#include "token/figure_merge.h"

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

// The parts of a sub-file: this worker's, which others fill, and where what it merges goes.
class TokenSort::ToPart final : public Outlet {
 public:
  // memories: of the parts, by rank; empty: rows go as messages. own: this worker's. All outlive it.
  ToPart(tool::Worker& worker, tool::Talk& talk, std::uint32_t channel, std::vector<std::uint32_t> ranks,
         std::uint64_t records, const PartShape& shape, std::span<Area> memories, Part& own)
      : worker_(worker),
        ranks_(std::move(ranks)),
        shape_(shape),
        memories_(memories),
        own_(own),
        rows_(talk, channel, options(worker.width(), records),
              [this](tool::Channel<Rows>::Item item) { return take(std::move(item)); }),
        sender_(width(), shape.record_length > 0, shape.block_records,
                [placement = placement()](std::uint64_t number) {  // for each record
                  const Cell cell = placement.locate(number);
                  return tool::NumberedPlace{cell.lfs, cell.row};
                }) {
    for (std::uint32_t to = 0; to < width(); ++to)
      sender_.open(to, rows_.credit(ranks_[to]),
                   memories_.empty() ? std::span<std::byte>() : memories_[ranks_[to]].space());
  }

  void put(std::uint64_t number, const std::uint64_t& original, Bytes record) override {
    sender_.put(number, std::as_bytes(std::span(&original, 1)), record);
  }
  void flush() override { sender_.flush(); }
  std::uint64_t queued_bytes() const override { return sender_.queued_bytes(); }

  // Sends what there is room for, and tells of room here; whether anything was sent.
  Result<bool> step() {
    if (shape_.window_blocks > 0) PIF_TRY(rows_.settle_rows(own_.settled()));
    return sender_.step([this](tool::RowMessage message) { return send(std::move(message)); });
  }

 private:
  struct Rows {
    std::uint64_t first = 0, count = 0;
    bool placed = false;  // the records are in the part's memory already
    static auto members(auto& self) { return std::tie(self.first, self.count, self.placed); }
  };
  std::uint32_t width() const { return static_cast<std::uint32_t>(ranks_.size()); }
  Placement placement() const { return Placement(width(), shape_.block_records); }
  // A window of blocks; or room for all, and only so much on its way.
  tool::ChannelOptions options(std::uint32_t workers, std::uint64_t records) const {
    tool::ChannelOptions options;
    options.window = kUnderWayBytes;
    if (shape_.window_blocks == 0) return options;
    options.unit = tool::Credit::Unit::kRows;
    options.window = shape_.window_blocks * shape_.block_records;
    options.senders = ranks_;
    options.rows.resize(workers);
    for (std::uint32_t i = 0; i < width(); ++i) options.rows[ranks_[i]] = placement().rows(i, records);
    return options;
  }
  Status send(tool::RowMessage records) {
    const std::uint32_t rank = ranks_[records.to];
    const bool placed = !memories_.empty();
    if (rank != worker_.rank()) worker_.count_sent(records.record_bytes);
    if (placed) {
      PIF_TRY(tool::place_records(records, shape_.record_length, memories_[rank].space()));
      records.body = {};  // how many there are is enough
    }
    const std::uint64_t bytes = records.counted_bytes(rows_.credit(rank));
    return rows_.send_rows(rank, {records.first, records.count, placed}, std::move(records.body), records.rows(),
                           bytes);
  }
  Status take(tool::Channel<Rows>::Item item) {
    return own_.accept(item.head.first, item.head.count, std::move(item.body), item.head.placed);
  }

  tool::Worker& worker_;
  std::vector<std::uint32_t> ranks_;
  PartShape shape_;
  std::span<Area> memories_;
  Part& own_;
  tool::Channel<Rows> rows_;
  tool::NumberedSender sender_;
};

class TokenSort::ToFile final : public Outlet {
 public:
  // input: where records are to be looked up; null: they are what is put.
  ToFile(tool::OrderedOutput& out, const InputRecords* input, FileLength& shipped)
      : out_(out), input_(input), shipped_(shipped) {}
  void expect(std::uint64_t original) const override {
    if (input_ != nullptr) fetch(input_->record(original));
  }
  void put(std::uint64_t number, const std::uint64_t& original, Bytes record) override {
    if (input_ != nullptr) record = input_->record(original);
    out_.put(number, record);
    ++shipped_.records;
    shipped_.bytes += record.size();
  }
  void flush() override { out_.flush(); }
  std::uint64_t queued_bytes() const override { return out_.queued_bytes(); }

 private:
  tool::OrderedOutput& out_;
  const InputRecords* input_;
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
  const std::uint32_t length = options_.input != nullptr ? *maker_.fixed_length() : format.record_length;
  shape.record_length = format.is_fixed() ? length + static_cast<std::uint32_t>(kNumberBytes) : 0;
  return shape;
}

// Everybody's part of the sub-files that merges of this depth make: each worker has one at most.
Status TokenSort::share_part(std::uint32_t depth) {
  if (!options_.share_memory || !output_.format().is_fixed()) return {};
  Live* const live = live_.empty() || tree_[live_.back().node].depth != depth ? nullptr : &live_.back();
  const Area none;
  const Area* const own = live == nullptr ? &none : parts_.at(live->node)->memory();
  PIF_TRY_VALUE(auto all, pif::sort::share(team_, *own, true));
  if (live != nullptr) live->memories = std::move(all);
  return {};
}

// This worker's part in the merge that makes `node`.
Status TokenSort::add_merge(std::uint32_t node) {
  const TreeNode& at = tree_[node];
  Live live;
  live.node = node;
  if (!at.is_leaf()) {  // the only one is merged with nothing
    live.side = *index_ < tree_[at.children[0]].end ? 0 : 1;
    live.child = at.children[live.side];
  }
  if (node > 0) {
    const bool is_shared = options_.share_memory && output_.format().is_fixed();
    PIF_TRY_VALUE(parts_[node], make_part(worker_, part_shape(at), block_maker(), is_shared));
  }
  live_.push_back(std::move(live));
  return {};
}

MergeShape TokenSort::merge_shape(const TreeNode& at) const {
  MergeShape shape{static_cast<std::uint32_t>(&at - tree_.data()),
                   {},
                   options_.block_records,
                   options_.key_bytes,
                   options_.unique && at.depth == 0};
  if (at.is_leaf()) {
    shape.sides[0] = {ranks_of(at), records_of(at)};
    return shape;
  }
  for (const unsigned side : {0U, 1U})
    shape.sides[side] = {ranks_of(tree_[at.children[side]]), records_of(tree_[at.children[side]])};
  return shape;
}

void TokenSort::join_end(tool::Talk& talk) {
  const auto channel = static_cast<std::uint32_t>(2 * tree_.size() + 1);  // behind those of the merges
  end_.emplace(talk, channel, tool::ChannelOptions(), [this](const tool::Channel<ResultEnd>::Item& item) -> Status {
    const auto is_early = [](const Live& live) { return live.node == 0 && !live.merge->may_be_over(); };
    if (item.head.records > records_of(tree_[0]) || std::any_of(live_.begin(), live_.end(), is_early))
      return fail(Code::kInvalid, fmt::format("an end of the output, at {} records", item.head.records));
    if (end_from_)
      return fail(Code::kInvalid, fmt::format("an end of the output, which worker {} said before", *end_from_));
    end_from_ = item.from;
    return out_->end(item.head.records);
  });
}

Status TokenSort::tell_end(const Merge& root) {
  if (!end_ || end_is_sent_ || !root.result()) return {};
  end_is_sent_ = true;
  for (std::uint32_t rank = 0; rank < worker_.width(); ++rank) PIF_TRY(end_->send(rank, {*root.result()}));
  return {};
}

// Each merge has two channels: 0 is the output's.
void TokenSort::join(Live& live, tool::Talk& talk) {
  const TreeNode& at = tree_[live.node];
  const std::uint32_t words = 2 * live.node + 1, rows = words + 1;
  if (live.node == 0) {
    live.outlet = std::make_unique<ToFile>(*out_, options_.input, shipped_);
  } else {
    auto outlet = std::make_unique<ToPart>(worker_, talk, rows, ranks_of(at), records_of(at), part_shape(at),
                                           live.memories, *parts_.at(live.node));
    live.to_part = outlet.get();
    live.outlet = std::move(outlet);
  }
  const auto make = [&]<typename Kind>(std::type_identity<Kind>) -> std::unique_ptr<Merge> {
    return std::make_unique<Kind>(talk, words, team_.clock(), merge_shape(at), live.side,
                                  *index_ - tree_[live.child].begin, *parts_.at(live.child), *live.outlet);
  };
  live.merge = options_.figure ? make(std::type_identity<FigureMerge>()) : make(std::type_identity<BatchedMerge>());
}

Status TokenSort::open_output() {
  FileLength file_length;
  for (const std::uint64_t records : records_) file_length.records += records;
  file_length.bytes = file_length.records * output_.format().record_length;  // what counts of it, with fixed records
  PIF_TRY_VALUE(auto out,
                tool::OrderedOutput::open(worker_, team_, output_, file_length,
                                          {.share_memory = options_.share_memory, .has_open_end = options_.unique}));
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
    if (merged) PIF_TRY(add_merge(node));
  }
  return depth == 0 ? Status() : share_part(depth);
}

Status TokenSort::run(std::vector<RunView> runs, Order& order) {
  std::uint32_t depth = 0;
  for (std::uint32_t node = 0; node < tree_.size(); ++node) {
    const TreeNode& at = tree_[node];
    if (!at.is_leaf()) depth = std::max(depth, at.depth);
    if (at.is_leaf() && index_ == at.begin) {
      parts_[node] = std::make_unique<OwnPart>(std::move(runs), order, maker_, block_maker(), options_.block_records);
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
  tool::Talk talk(team_);
  if (out_) out_->join(talk);
  if (out_ && options_.unique) join_end(talk);
  for (Live& live : live_) join(live, talk);
  while (true) {
    PIF_TRY_VALUE(const bool moved, advance());
    if (is_done()) break;
    PIF_TRY(talk.go_on(!moved));
    worker_.progress(shipped_.records, records_of(tree_[0]));
  }
  PIF_TRY(talk.end());
  end_.reset();
  for (const Live& live : live_) {
    counts_.add(live.merge->counts());
    parts_.erase(live.child);
  }
  live_.clear();
  return {};
}

Result<bool> TokenSort::advance() {
  bool moved = false;
  for (Live& live : live_) {
    PIF_TRY_VALUE(const bool merged, live.merge->advance());
    moved = moved || merged;
    if (live.node == 0) PIF_TRY(tell_end(*live.merge));
    if (live.to_part != nullptr) {
      PIF_TRY_VALUE(const bool sent, live.to_part->step());
      moved = moved || sent;
    }
  }
  if (!out_) return moved;
  PIF_TRY_VALUE(const bool sent, out_->step());
  return moved || sent;
}

bool TokenSort::is_done() const {
  const bool merged = std::all_of(live_.begin(), live_.end(), [](const Live& live) {
    return live.merge->is_done() && live.outlet->queued_bytes() == 0;
  });
  const bool received =
      std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part.second->is_complete(); });
  return merged && received && (!out_ || out_->is_done());
}

}  // namespace pif::sort
