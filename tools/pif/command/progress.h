// How far a long command is, on stderr when that is a terminal: rate, share done, time left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "pif/client/bulk.h"

namespace pif::cli {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // total 0: unknown. Shows nothing if `wanted` is false or stderr is no terminal.
  Progress(std::string what, std::uint64_t total_bytes, bool wanted);
  ~Progress();  // wipes its line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Bytes done so far. Prints at most ten times a second.
  void set(std::uint64_t done_bytes);

  // "/a/b 1.2 GiB 40% 810.0 MiB/s 2.10 s left".
  static std::string line(const std::string& what, std::uint64_t done, std::uint64_t total,
                          std::chrono::duration<double> elapsed);

 private:
  std::string what_;
  std::uint64_t total_;
  bool shown_;
  bool dirty_ = false;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_{};
};

// Options of a bulk transfer that shows itself here, and ends when `cancel` is set.
BulkOptions options_with(Progress& progress, const std::atomic<bool>* cancel = nullptr);

}  // namespace pif::cli
