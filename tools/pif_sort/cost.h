// How long a sort will take: the formulas of Dibble 1990, 5.3.3 and 5.3.6, with constants that the workers measure on a
// sample of their own components, one after another.
#pragma once

#include <vector>

#include "pif/tool/team.h"
#include "runs/run.h"
#include "sort.h"

namespace pif::sort {

// Seconds.
struct Constants {
  double load = 0;     // of a record: read, checked, its key made
  double compare = 0;  // of a record, for each doubling of what is sorted
  double move = 0;     // of a record: to its place in another file
  double hop = 0;      // of a word from one worker to the next
  double crowd = 1;    // workers per core: one has the machine for itself when it is measured, and not when it works
  double threads = 1;  // of a worker, in the local phase and the split merge; it is measured on one
};

// Called by all workers.
[[nodiscard]] Result<Constants> measure(tool::Worker& worker, tool::Team& team, tool::Input& input,
                                        const KeyMaker& maker);
// What most of them see.
Constants mean_of(const std::vector<Constants>& all);

struct CostShape {
  std::uint64_t records = 0;
  std::uint32_t width = 1;  // of the input
  bool on_disk = false;     // runs are written
  std::uint64_t token_batch = 0;
};
struct Cost {
  double sort = 0;  // seconds: the local phase
  double merge = 0;
  double total() const { return sort + merge; }
};
Cost predict(const Constants& constants, const CostShape& shape, MergeKind merge);

}  // namespace pif::sort
