// A function with its own stack that can stop in the middle and go on later. Under a sanitizer, which must know about
// stacks, it is a thread that waits for its turn; what happens is the same.
#pragma once

#include <functional>
#include <memory>

namespace pif::sim {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  // Its body has ended, or never began.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it suspends itself or ends. Called from outside of it: from no fiber, or from another one.
  void resume();
  // Called by its body: gives control back to who resumed it.
  void suspend();

  struct Context;  // private

 private:
  std::unique_ptr<Context> context_;
};

}  // namespace pif::sim
