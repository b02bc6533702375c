// Where the shares of a split merge begin when no worker can see the others' records: every worker takes samples of its
// own runs at even distances, and all choose the same splitters among them. A share is off from an even one by no more
// than the records between two samples, of all runs together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pif/tool/team.h"
#include "runs/run.h"

namespace pif::sort {

class Splitters {
 public:
  // Called by all workers. keep_together: records with equal keys are of one share. records, workers: of all.
  static Result<Splitters> choose(tool::Team& team, std::span<const RunView> own, const KeyMaker& maker, Order& order,
                                  std::uint32_t shares, bool keep_together, std::uint64_t records,
                                  std::uint32_t workers);
  // How many of the run's elements come before share `share`, 0 .. shares. The maker given to choose() lives still.
  std::size_t cut(const RunView& run, std::uint32_t share, const Order& order) const;

 private:
  Splitters(const KeyMaker& maker, std::vector<std::string> firsts) : maker_(&maker), firsts_(std::move(firsts)) {}

  const KeyMaker* maker_;
  std::vector<std::string> firsts_;  // of share 1, 2, ..: what comes before this full key belongs to a lower share
};

}  // namespace pif::sort
