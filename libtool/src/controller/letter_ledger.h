// Which letters between a job's workers were lost on the way: what each says that it sent, against what each says that
// it took. Workers say so to their controller, over connections that lose nothing. Pure.
//
// A letter counts as lost when its receiver, while it waited for letters, has said kReportsMax times in a row that it
// lacks it. It says so every kLetterReportInterval, so the letter has had kLetterLost to come. No clock is asked: a
// controller that was stopped finds only the latest word of each worker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "job.pb.h"
#include "messages/job.h"

namespace pif::tool {

class LetterLedger {
 public:
  static constexpr unsigned kReportsMax = 1 + kLetterLost / kLetterReportInterval;

  explicit LetterLedger(std::size_t workers) : workers_(workers) {}

  struct Lost {
    std::uint32_t from = 0;   // rank
    std::uint64_t count = 0;  // at least one
  };
  // Whether counts are of so many workers: the following rely on it.
  bool fits(const job::LetterCounts& counts) const;
  // The letters that worker `rank` has sent, also at its end, when it waits for nothing any more.
  void take_sent(std::uint32_t rank, const job::LetterCounts& counts);
  // While worker `rank` waits: letters to it that are lost, of one sender.
  std::optional<Lost> take_wait(std::uint32_t rank, const job::LetterCounts& counts);

 private:
  struct Line {
    std::uint64_t sent = 0, taken = 0;
    unsigned reports = 0;  // that it lacks the letter after `taken`
  };
  Line& line(std::uint32_t from, std::uint32_t to);

  std::size_t workers_;
  std::vector<Line> lines_;  // by receiver, then by sender; empty until somebody says something
};

}  // namespace pif::tool
