// A function with its own stack that can stop in the middle and go on later. Under a sanitizer, which must know about
// stacks, it is a thread that waits for its turn; what happens is the same. One thread uses it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace pif::daemon {

// Stacks of fibers, each with a guard page below it. They are used again: a fresh one costs more than a short fiber.
class FiberStacks {
 public:
  // bytes: of each, a multiple of the page size. kept_max: so many unused ones are kept.
  explicit FiberStacks(std::size_t bytes, std::size_t kept_max = 64) : bytes_(bytes), kept_max_(kept_max) {}
  // All stacks were given back.
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // A stack's size, guard page included.
  std::size_t bytes() const { return bytes_; }
  // The most that any stack was used for, in bytes and in whole pages, as far as it has been given up. 0 under a
  // sanitizer.
  std::size_t used_max() const { return used_max_; }

 private:
  friend class Fiber;
  void* take();
  void give_back(void* stack);
  void* fresh() const;
  void unmap(void* stack);

  const std::size_t bytes_;
  const std::size_t kept_max_;
  std::size_t taken_ = 0;
  std::size_t used_max_ = 0;
  std::vector<void*> free_;
};

class Fiber {
 public:
  // stacks outlives it.
  Fiber(FiberStacks& stacks, std::function<void()> body);
  // Its body has ended, or never began.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it suspends itself or ends. Called from outside of it: from no fiber, or from another one. No
  // exception leaves its body.
  void resume();
  // Called by its body: gives control back to who resumed it.
  void suspend();

  struct Context;  // private

 private:
  std::unique_ptr<Context> context_;
};

}  // namespace pif::daemon
