// New numbers, in file order, for what workers make of an input's records, of which each gives any number: say, those
// that a search found, or the parts of each. Window by window every worker says how many come of each of its rows, and
// learns the numbers of its own. A bit a record travels to all where none gives more than one, else a few bytes.
//
//   Numbering numbering(worker, team, *input);
//   while (!numbering.is_over()) {
//     const Range rows = numbering.rows();
//     ... counts: one of each of these rows
//     PIF_TRY_VALUE(const auto numbers, numbering.next(counts));
//   }
//
// Memory: at most some 50 MiB, however long the input is. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/component.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"

namespace pif::tool {

class Numbering {
 public:
  static constexpr std::uint64_t kWindow = 1u << 22;  // records

  // The three outlive it.
  Numbering(Worker& worker, Team& team, Input& input) : worker_(worker), team_(team), input_(input) {}

  // Whether all records of the input have their numbers.
  bool is_over() const { return begin_ >= input_.file_length().records; }
  // This worker's rows of the next window; empty if it has none there.
  Range rows() const;
  // counts: how many come of each of these rows. Comes back, for each, the number of the first of them. Called by all
  // workers, as steps of the team, until all are over. kInvalid: not a count for each row; kCorrupt names a worker that
  // sent what cannot be; kInternal: an LFS of the input has no worker; else as the team's steps.
  [[nodiscard]] Result<std::vector<std::uint64_t>> next(std::span<const std::uint32_t> counts);
  // Numbers that were given so far, at all workers together: once it is over, how many records there are.
  std::uint64_t records() const { return records_; }

 private:
  Range window() const;
  Range rows_of(LfsIndex lfs, Range records) const { return input_.layout().rows(lfs, records); }
  [[nodiscard]] Result<std::vector<std::uint32_t>> slice(std::span<const std::uint32_t> counts, Range own);

  Worker& worker_;
  Team& team_;
  Input& input_;
  RecordNumber begin_ = 0;     // of the next window
  std::uint64_t records_ = 0;  // numbers given
};

}  // namespace pif::tool
