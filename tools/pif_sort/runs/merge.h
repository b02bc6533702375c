// Merging sorted runs: exact cuts, so that every worker merges its own part of the result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runs/order.h"

namespace pif::sort {

// How many elements of each run come before `position` in the order of all of them; position <= their number.
std::vector<std::size_t> cut_at(std::span<const RunView> runs, std::uint64_t position, Order& order);

// Record `index` of run `run`.
struct Pick {
  std::uint32_t run = 0;
  std::uint32_t index = 0;
};

// The elements of [begin, end) of every run, in order. A tree of losers (Knuth 5.4.1) that compares codes (element.h):
// records are looked at where two of them are equal, and the loser's code then says where it differs. Runs on disks
// have a window: its next half is read while one half is merged.
class Merger {
 public:
  // runs and order outlive it.
  Merger(std::span<const RunView> runs, std::vector<std::size_t> begin, std::vector<std::size_t> end, Order& order);

  bool is_done() const { return is_empty(winner_); }
  // The next one; not if is_done().
  Pick peek() const { return {winner_, static_cast<std::uint32_t>(at_[winner_])}; }
  void advance();
  // With levels: whether the next one has the key of the one before it in this merge.
  bool has_levels() const { return has_levels_; }
  bool is_same_key() const { return codes_[winner_] == kSameCode; }

 private:
  bool is_empty(std::uint32_t run) const { return run >= at_.size() || at_[run] == end_[run]; }
  bool before(std::uint32_t a, std::uint32_t b);
  bool settle(std::uint32_t a, std::uint32_t b);
  int compare_texts(std::uint32_t a, std::uint32_t b, OffsetCode& loser);
  std::uint32_t play(std::uint32_t node);
  void load(std::uint32_t run, bool is_first);
  void read_ahead(std::uint32_t run);

  std::span<const RunView> runs_;
  std::vector<std::size_t> at_, end_;
  std::vector<std::size_t> asked_;   // records before it are read, or will be soon
  std::vector<std::size_t> ask_at_;  // where more of a run is to be asked for
  // The code of each run's next record, behind the one before in this merge, or behind whom it lost to since. All of
  // level 0 unless all runs have levels.
  std::vector<OffsetCode> codes_;
  Order& order_;
  bool has_levels_, has_zeros_;
  std::uint32_t leaves_ = 1;           // a power of two
  std::vector<std::uint32_t> losers_;  // by inner node, from 1
  std::uint32_t winner_ = 0;
};

// The records at positions [begin, end) of the result, in order; with `unique` without those that have the key of the
// record before them, also of the one before `begin`. Allocates only where it is made and where keys are long.
class ShareWalk {
 public:
  // All outlive it.
  ShareWalk(const KeyMaker& maker, const RecordNumbers& numbers, std::span<const RunView> runs, std::uint64_t begin,
            std::uint64_t end, bool unique);
  ShareWalk(const ShareWalk&) = delete;
  ShareWalk& operator=(const ShareWalk&) = delete;
  std::optional<Pick> next();

 private:
  std::optional<Pick> last_before_cut();
  bool is_again(Pick pick);

  std::span<const RunView> runs_;
  bool unique_;
  Order order_;
  std::vector<std::size_t> cut_;  // where it begins, until merge_ has it
  std::optional<Pick> last_;
  Merger merge_;
  bool is_first_ = true;  // the next one is the first of merge_
};

}  // namespace pif::sort
