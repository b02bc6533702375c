// The seam for work that would hold up an event loop (fsync, unlink of large files, checks of whole components).
#pragma once

#include <functional>

namespace pif {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` away from the loop, then `done` on the loop's thread. Both may be called before submit returns
  // (a simulation does). Called on the loop's thread only. Bounded: at most `limit` works run at once, others wait.
  virtual void submit(std::function<void()> work, std::function<void()> done) = 0;
  // Waits for the work that runs, and drops the rest: no `done` is called any more. On the loop's thread only.
  virtual void drain() = 0;
};

// Runs everything at once, on the caller's thread.
class InlineExecutor final : public Executor {
 public:
  void submit(std::function<void()> work, std::function<void()> done) override {
    work();
    done();
  }
  void drain() override {}
};

}  // namespace pif
