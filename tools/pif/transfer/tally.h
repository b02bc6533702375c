// Counts of a run of put or get so far. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "command/failures.h"
#include "command/program.h"
#include "command/progress.h"

namespace pif::cli {

class Tally {
 public:
  // what: for the line that shows how far it is.
  Tally(const Program& program, std::string what);
  // Before anything is moved: how many bytes that will be.
  void expect(std::uint64_t bytes);

  Failures& failures() { return failures_; }
  // One file is done. document: makes what --json has of it; sorted by `local` in the end, which is the order of a
  // walk.
  void done(const std::string& local, std::uint64_t bytes, const std::function<Json()>& document);
  void skipped();
  void left_out_link();
  // A file was written, but for what this text says (--stale).
  void incomplete(const std::string& text);
  // For a transfer that shows itself as a part of this.
  BulkOptions options(const std::atomic<bool>* cancel = nullptr);
  // The line at the end.
  Outcome report();

 private:
  void show(std::uint64_t more);

  const Program& program_;
  const Progress::Clock::time_point started_ = Progress::Clock::now();
  Failures failures_{program_, Failures::Say::kInTheEnd};
  const std::string what_;
  std::mutex mutex_;  // guards all below
  std::optional<Progress> progress_;
  std::uint64_t files_ = 0, bytes_ = 0, moved_ = 0, skipped_ = 0, links_ = 0;
  std::vector<std::pair<std::string, Json>> documents_;
  std::vector<std::string> incomplete_;
};

}  // namespace pif::cli
