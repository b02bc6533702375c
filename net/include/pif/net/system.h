// The real clock, entropy and executor.
#pragma once

#include <memory>

#include "pif/base/clock.h"
#include "pif/base/executor.h"
#include "pif/net/messenger.h"

namespace pif::net {

class SystemClock final : public Clock {
 public:
  Time now() const override;
  std::int64_t wall_seconds() const override;
  std::int64_t wall_ns() const override;
  Time boottime() const override;
};

class SystemEntropy final : public Entropy {
 public:
  std::uint64_t next() override;
};

// Threads that run submitted work; completions are run by run_completions(), which the loop calls on Delivery::kWake.
// The destructor waits for work under way; what has not begun by then, and completions that were not run, never happen.
class ThreadExecutor final : public Executor {
 public:
  // loop outlives it and is woken after each work. threads: at most so many, 0 is taken for 1; each starts when it is
  // needed.
  ThreadExecutor(Messenger& loop, unsigned threads);
  ~ThreadExecutor() override;
  void submit(std::function<void()> work, std::function<void()> done) override;
  void drain() override;
  // Runs the `done` of all work that has ended since; they may submit more. On the loop's thread only.
  void run_completions();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Allocator settings for daemons and tools that move bulk frames: keep freed megabyte buffers instead of giving them
// back to the kernel and faulting them in again, with few arenas so that memory stays bounded. Call first in main().
void tune_allocator();

}  // namespace pif::net
