// The tree of merges by token: one pass after another, with sub-files in scratch files between them (Dibble
// 1990, 5.3.2), or all passes at once (5.3.6), with blocks of sub-files that flow through memory.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "pif/tool/ordered_output.h"
#include "token/token_merge.h"

namespace pif::sort {

// The tree's nodes: each stands for the workers [begin, end) of the input's LFSs, and is merged from its children, the
// first half (rounded up) and the second. Node 0 is the root.
struct TreeNode {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t depth = 0;
  std::uint32_t children[2] = {0, 0};  // 0: none, a leaf
  std::uint32_t width() const { return end - begin; }
  bool is_leaf() const { return children[0] == 0; }
};
std::vector<TreeNode> make_tree(std::uint32_t width);

struct TokenOptions {
  bool share_memory = true;  // all workers are on one machine: records of one length are put where they belong
  bool in_memory = false;    // there is room for sub-files
  bool pipelined = false;
  bool figure = false;  // figure 5.4: one record per hop
  bool unique = false;
  std::uint64_t block_records = 1;
  std::uint64_t key_bytes = 0;          // of the longest key
  const InputRecords* input = nullptr;  // where records are looked up at the end; null: they travel
};

class TokenSort {
 public:
  // ranks, records: of the workers that have a component of the input, in its order. All outlive it.
  TokenSort(tool::Worker& worker, tool::Team& team, const TokenOptions& options, const KeyMaker& maker,
            tool::Output& output, std::vector<std::uint32_t> ranks, std::vector<std::uint64_t> records);

  // Merges this worker's runs (none if it has no component) with everybody else's into the output.
  [[nodiscard]] Status run(std::vector<RunView> runs, Order& order);
  MergeCounts counts() const { return counts_; }
  const FileLength& shipped() const { return shipped_; }  // into the output, by this worker

 private:
  class ToPart;
  class ToFile;
  struct Live {  // a merge that makes `node`: this worker's part of it
    std::uint32_t node = 0;
    std::uint32_t child = 0;  // the side that it reads
    unsigned side = 0;
    std::vector<Area> memories;  // of the parts of what is made, by rank; empty: rows go as messages
    std::unique_ptr<Outlet> outlet;
    ToPart* to_part = nullptr;  // the outlet, if it is one
    std::unique_ptr<Merge> merge;
  };
  std::uint64_t records_of(const TreeNode& node) const;
  std::vector<std::uint32_t> ranks_of(const TreeNode& node) const;
  PartShape part_shape(const TreeNode& node) const;
  [[nodiscard]] Status open_output();
  [[nodiscard]] Status begin(std::uint32_t depth);
  [[nodiscard]] Status share_part(std::uint32_t depth);
  [[nodiscard]] Status add_merge(std::uint32_t node);
  BlockMaker block_maker() const { return {maker_, output_.format(), records_of(tree_[0]), options_.input != nullptr}; }
  MergeShape merge_shape(const TreeNode& at) const;
  void join(Live& live, tool::Talk& talk);
  [[nodiscard]] Status finish();
  [[nodiscard]] Result<bool> advance();
  bool is_done() const;
  // How many records the output has, from the worker that had the root's token last.
  struct ResultEnd {
    std::uint64_t records = 0;
    static auto members(auto& self) { return std::tie(self.records); }
  };
  void join_end(tool::Talk& talk);
  [[nodiscard]] Status tell_end(const Merge& root);

  tool::Worker& worker_;
  tool::Team& team_;
  TokenOptions options_;
  const KeyMaker& maker_;
  tool::Output& output_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::uint64_t> records_;
  std::vector<TreeNode> tree_;
  std::optional<std::uint32_t> index_;                    // of this worker among ranks_
  std::map<std::uint32_t, std::unique_ptr<Part>> parts_;  // this worker's, of the tree's sub-files
  std::vector<Live> live_;
  std::optional<tool::OrderedOutput> out_;
  std::optional<tool::Channel<ResultEnd>> end_;  // with unique, in the root's talk
  bool end_is_sent_ = false;
  std::optional<std::uint32_t> end_from_;  // who has said where the output ends
  MergeCounts counts_;
  FileLength shipped_;
};

}  // namespace pif::sort
