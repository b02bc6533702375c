// The split merge between workers on one machine: all see everybody's runs, each merges its own part of the result, and
// writes it to the components of all LFSs, all at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "output/stretches.h"
#include "pif/tool/team.h"
#include "runs/merge.h"
#include "runs/run.h"
#include "split/split_options.h"

namespace pif::sort {

// Which workers have a share of a result in memory: of those that may run on the same cores no more than there are, for
// each maps all records. cores: of each worker, by rank; none is empty. Returns how many with a lower rank have one, by
// rank, and last of all how many do.
std::vector<std::uint32_t> mergers_before(std::span<const std::vector<std::uint32_t>> cores);

class NearSplit {
 public:
  // All outlive it.
  NearSplit(tool::Worker& worker, tool::Team& team, Inputs& inputs, tool::Output& output, const KeyMaker& maker,
            const SplitOptions& options);
  // own: this worker's runs. Called by all workers.
  [[nodiscard]] Status run(Runs own);
  const FileLength& put_out() const { return put_out_; }  // by this worker

 private:
  [[nodiscard]] Status share_runs(Runs own);
  [[nodiscard]] Status share_area(const Area& own, Area Runs::*area);
  [[nodiscard]] Status share_counts(const Runs& own);
  bool merges() const { return mergers_before_[worker_.rank()] != mergers_before_[worker_.rank() + 1]; }
  std::uint64_t share_begin(std::uint32_t rank, std::uint64_t alignment) const;
  [[nodiscard]] Status put_out_rows();
  [[nodiscard]] Status put_out_stretches();
  [[nodiscard]] Result<Range> count_share(std::uint64_t count);
  [[nodiscard]] Result<std::vector<std::uint64_t>> bytes_before(const std::vector<std::uint64_t>& own);
  [[nodiscard]] Status finish_stretches(Stretches& out, std::string& state, std::string& tails);
  [[nodiscard]] Status take_tails(const std::string& own);

  tool::Worker& worker_;
  tool::Team& team_;
  Inputs& inputs_;
  tool::Output& output_;
  const KeyMaker& maker_;
  SplitOptions options_;
  std::vector<Runs> runs_;  // of all workers, by rank
  std::vector<RunView> views_;
  std::vector<component::Files> files_;
  std::uint64_t records_ = 0;                  // that are put out, or, if some are dropped, looked at for that
  std::vector<std::uint32_t> mergers_before_;  // as the function says
  FileLength put_out_;
};

}  // namespace pif::sort
