// A worker's share of the result where records are put out one component after another and there is memory: which
// records it is, found on all of the worker's threads.
#pragma once

#include <span>
#include <vector>

#include "runs/output.h"

namespace pif::sort {

class KeptShare {
 public:
  // runs: of all workers. All outlive it.
  KeptShare(tool::Worker& worker, const KeyMaker& maker, const parity::Layout& layout, std::span<const RunView> runs)
      : worker_(worker), maker_(maker), layout_(layout), runs_(runs) {}

  // The records at these positions of the result; unique: as ShareWalk.
  [[nodiscard]] Status find(PositionRange range, bool unique);
  std::span<const Pick> picks() const { return picks_; }

 private:
  tool::Worker& worker_;
  const KeyMaker& maker_;
  const parity::Layout& layout_;
  std::span<const RunView> runs_;
  std::vector<Pick> picks_;
};

}  // namespace pif::sort
