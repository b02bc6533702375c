// How far the directory has come, and which file ids are its own (docs/FORMAT.md "Who is how old").
//
// Rules: (1) `index` rises by one with every transaction and is written in it. (2) A run is one life of a server; it
// begins with a transaction of its own. (3) Every run gives out ids of a range of its own, so that two histories of a
// directory never give out the same one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "directory/rows.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"

namespace pif::server {

// Into a directory that has none.
[[nodiscard]] Status make_numbers(Rows& rows);

class Numbers {
 public:
  explicit Numbers(Rows& rows) : rows_(rows) {}

  // At a start: reads what there is, and begins a new run with this turn.
  [[nodiscard]] Status load(Entropy& entropy);
  // A number for a file or folder, never given out before.
  [[nodiscard]] Result<std::uint64_t> next_id();
  // Another history has given out this id, which is used here from now on: none of its range is given out here.
  [[nodiscard]] Status take_in(std::uint64_t id);
  // The index of this turn's transaction, if it has one.
  std::uint64_t next_index() const { return std::max(index_, above_) + 1; }
  // Before the commit of a turn that has written something.
  [[nodiscard]] Status stamp();
  std::uint64_t run() const { return run_; }
  // The run, and the index of the last durable transaction.
  proto::Moment moment() const;
  // Whether this directory's history has that moment. A run of 0 is no moment: nothing was heard yet.
  bool knows(const proto::Moment& kept) const;
  // From now on it does, by a person's word.
  [[nodiscard]] Status accept(const proto::Moment& kept);
  // This turn's index, and all later ones, are above `index`.
  void raise_above(std::uint64_t index);

 private:
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t end = 0;  // the next run's first
  };

  [[nodiscard]] Status begin_range();

  Rows& rows_;
  Entropy* entropy_ = nullptr;
  std::uint64_t index_ = 0;  // durable
  std::uint64_t above_ = 0;  // the next one is higher than this, too
  std::uint64_t run_ = 0;
  std::unordered_map<std::uint64_t, Run> runs_;
  std::unordered_map<std::uint64_t, std::uint64_t> accepted_;  // run: the highest index
  std::unordered_set<std::uint64_t> ranges_;                   // upper halves of ids
  std::uint64_t last_id_ = 0;
};

}  // namespace pif::server
