// Time as an argument. Steady time for deadlines, wall time only for what people and capabilities read.
// The system's clock is net::SystemClock; a simulation brings its own.
#pragma once

#include <chrono>
#include <cstdint>

namespace pif {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<struct SteadyEpoch, Duration>;  // SteadyEpoch is only a tag: no clock of its own

inline constexpr Time kNever = Time::max();

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;                   // never goes back; any thread
  virtual std::int64_t wall_seconds() const = 0;  // seconds since 1970, may jump; any thread
  virtual std::int64_t wall_ns() const { return wall_seconds() * 1'000'000'000; }  // the same, as fine as it gets
  // Goes on while the machine sleeps, for promises to others; not comparable with now(). Any thread.
  virtual Time boottime() const { return now(); }
};

// Random numbers for ids, nonces and secrets; a seed in a simulation. One thread.
class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual std::uint64_t next() = 0;  // 64 random bits; fit for keys in the real world
};

}  // namespace pif
