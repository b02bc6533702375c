// The passes of a recursive transpose on one LFS: its rows in scratch files, and the exchange of grains between them.
//
// In a pass with grains of k elements, row r keeps every second grain, from the one numbered h = (r / k) mod 2 on; the
// others change places with those of row r + k (h = 0) or r - k (h = 1). All these rows are here (recursive_plan.h).
// The worker's threads have a part of the rows each. Not thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "matrix/row_source.h"
#include "pif/tool/team.h"
#include "recursive/recursive_plan.h"

namespace pif::transpose {

class Passes {
 public:
  // The three outlive it. A worker whose LFS is none of the input's has no rows, but takes part in the barriers.
  Passes(tool::Worker& worker, tool::Team& team, tool::Input& input, const RecursivePlan& plan);

  // Takes the scratch files, reads the component into one of them.
  [[nodiscard]] Status load();
  // Calls of all workers: there is a barrier after the splitting and after the joining.
  [[nodiscard]] Status run();

  // Starts reading these local rows.
  void read_ahead(Range rows) const { read_ahead(rows_, rows); }
  // A local row that is kept, plan.row_bytes().
  std::byte* row(std::uint64_t i) { return rows_.space().data() + i * plan_.row_bytes(); }

 private:
  bool is_odd(std::uint64_t i, std::uint64_t grain) const { return (numbers_[i] / grain & 1) != 0; }
  void number_rows();
  [[nodiscard]] Status for_parts(std::uint64_t rows, const std::function<Status(Range)>& f);
  [[nodiscard]] Status load(Range rows, std::atomic<std::uint64_t>& bytes_read);
  void go_through(Range part, const std::function<void(Range)>& read_ahead,
                  const std::function<void(std::uint64_t)>& f) const;
  [[nodiscard]] Status split(std::uint64_t grain, Range part);
  [[nodiscard]] Status join(std::uint64_t grain, Range part);
  void read_ahead(const tool::Scratch& scratch, Range rows) const;
  void read_partners_ahead(std::uint64_t grain, Range rows) const;

  tool::Worker& worker_;
  tool::Team& team_;
  tool::Input& input_;
  const RecursivePlan& plan_;
  std::vector<std::uint64_t> numbers_;  // in the matrix, of all local rows
  tool::Scratch rows_;
  tool::Scratch staying_, moving_;  // temp1 and temp2 of figure 5.15: half of each row
};

}  // namespace pif::transpose
