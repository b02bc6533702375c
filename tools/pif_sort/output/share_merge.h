// A worker's share of the result on all of its threads: each merges a range of it and puts the records together, while
// what they made before is written.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "output/output.h"

namespace pif::sort {

class ShareMerge {
 public:
  // runs: of all workers. share begins and ends at multiples of ParallelOutput::alignment(), or with the file. All
  // outlive it.
  ShareMerge(tool::Worker& worker, const KeyMaker& maker, const RecordNumbers& numbers, const tool::Output& output,
             std::span<const RunView> runs, Range share);
  // All of the share. written(records): so many more are; on this thread.
  [[nodiscard]] Status write(ParallelOutput& out, const std::function<void(std::uint64_t records)>& written);

 private:
  // The work of one thread.
  struct Part {
    Part(const KeyMaker& maker, const RecordNumbers& numbers, std::span<const RunView> runs, Range range);
    Range left;
    Order order;
    Merger merge;
    std::array<OutputBatch, 2> batches;  // one is written while the other one is made
  };
  [[nodiscard]] Status write_batches(ParallelOutput& out, std::size_t which) const;

  tool::Worker& worker_;
  const tool::Output& output_;
  std::span<const RunView> runs_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace pif::sort
