// The times of a worker's steps, for a trace of its job. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "job.pb.h"
#include "pif/base/clock.h"

namespace pif::tool {

inline constexpr std::size_t kSpansMax = 50'000;  // of one worker; what comes later is counted only

class Trace {
 public:
  explicit Trace(const Clock& clock)
      : clock_(clock), to_wall_(clock.wall_ns() - clock.now().time_since_epoch().count()) {}

  Time now() const { return clock_.now(); }
  // From `begin` until now. other: the worker that it has to do with, if any.
  void add(const std::string& name, Time begin, std::uint64_t bytes, std::optional<std::uint32_t> other = {});
  void add_now(const std::string& name, std::uint32_t other, std::uint64_t bytes) { add(name, now(), bytes, other); }
  // Ends the phase before it.
  void begin_phase(const std::string& name);
  // Ends the last phase, and gives all.
  void add_to(job::WorkerEnd& end);

 private:
  void end_phase();

  const Clock& clock_;
  std::int64_t to_wall_;  // nanoseconds
  std::mutex mutex_;
  std::vector<job::Span> spans_;
  std::vector<std::thread::id> threads_;  // by their number
  std::uint64_t left_out_ = 0;
  std::string phase_;  // empty: none
  Time phase_begin_{};
};

// Something that ends with this object. trace: null: it is not noted.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, const char* name, std::optional<std::uint32_t> other = {})
      : trace_(trace), name_(name), other_(other), begin_(trace ? trace->now() : Time{}) {}
  ~TraceSpan() {
    if (trace_) trace_->add(name_, begin_, bytes_, other_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }

 private:
  Trace* trace_;
  const char* name_;
  std::optional<std::uint32_t> other_;
  Time begin_;
  std::uint64_t bytes_ = 0;
};

}  // namespace pif::tool
