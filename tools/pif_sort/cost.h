// How long a sort will take: the formulas of Dibble 1990, 5.3.3 and 5.3.6, with what this file system's calibration
// knows of the machine and of our kernels. Pure.
#pragma once

#include "pif/tool/prediction.h"
#include "sort.h"

namespace pif::sort {

struct CostShape {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint32_t width = 1;   // of the input
  unsigned threads = 0;      // on each machine; 0: as many as it has cores
  std::uint64_t memory = 0;  // of all workers together; 0: runs are in memory
  std::uint64_t token_batch = kTokenBatch;

  double record_length() const;
};

// The work of the workers: phases kSortPhase and kMergePhase. Records are taken to be of one length, keys at random,
// blocks as large as asked, and what is read to be in the page cache.
tool::Prediction predict(const tool::Calibration& calibration, const CostShape& shape, MergeKind merge);

// All tokens of such a sort together: how far they travel, and how often to the other side.
struct TokenCounts {
  double hops = 0;
  double crossings = 0;
};
TokenCounts token_counts(const CostShape& shape);

// Table 5.5 of the thesis, with this machine's constants: names and values with what they are of.
std::vector<std::pair<std::string, std::string>> thesis_constants(const tool::Calibration& calibration,
                                                                  const CostShape& shape);

inline constexpr const char* kSortPhase = "sort";
inline constexpr const char* kMergePhase = "merge";

}  // namespace pif::sort
