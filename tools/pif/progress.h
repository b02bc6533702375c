// How far a long command is, on stderr when that is a terminal: rate, share done, time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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
  void add(std::uint64_t bytes) { set(done_ + bytes); }
  void name(std::string what) { what_ = std::move(what); }

  std::uint64_t done() const { return done_; }
  std::chrono::duration<double> elapsed() const { return Clock::now() - started_; }

  // "/a/b 1.2 GiB 40% 810.0 MiB/s 2.10 s left".
  static std::string line(const std::string& what, std::uint64_t done, std::uint64_t total, std::chrono::duration<double> elapsed);

 private:
  std::string what_;
  std::uint64_t total_;
  bool shown_;
  bool dirty_ = false;
  std::uint64_t done_ = 0;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_{};
};

}  // namespace pif::cli
