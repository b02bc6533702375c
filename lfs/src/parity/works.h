// Work of parity away from the loop: a few at once, so that the executor's other threads are for syncs and reads.
// The loop's thread.
#pragma once

#include <utility>

#include "pif/base/executor.h"
#include "pif/daemon/fibers.h"

namespace pif::lfs {

class Works {
 public:
  Works(daemon::Fibers& fibers, Executor& executor) : fibers_(fibers), executor_(executor), slots_(fibers, kAtOnce) {}

  // As daemon::disk(), in turn.
  template <typename Work>
  auto run(Work work) {
    const auto slot = slots_.acquire();
    return daemon::disk(fibers_, executor_, std::move(work));
  }
  // The same of a member function.
  template <auto kMethod, typename Object, typename... Args>
  auto run(Object& object, const Args&... args) {
    return run([&] { return (object.*kMethod)(args...); });
  }

 private:
  static constexpr unsigned kAtOnce = 3;

  daemon::Fibers& fibers_;
  Executor& executor_;
  daemon::Slots slots_;
};

}  // namespace pif::lfs
