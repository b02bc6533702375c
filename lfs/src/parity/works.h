// Work of parity away from the loop: a few at once, so that the executor's other threads are for syncs and reads.
// The loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "pif/base/executor.h"

namespace pif::lfs {

class Works {
 public:
  explicit Works(Executor& executor) : executor_(executor) {}

  // As Executor::submit().
  void submit(std::function<void()> work, std::function<void()> done) {
    waiting_.emplace_back(std::move(work), std::move(done));
    begin();
  }

 private:
  static constexpr unsigned kAtOnce = 3;

  void begin() {
    while (under_way_ < kAtOnce && !waiting_.empty()) {
      auto [work, done] = std::move(waiting_.front());
      waiting_.pop_front();
      ++under_way_;
      executor_.submit(std::move(work), [this, done = std::move(done)] {
        --under_way_;
        done();
        begin();
      });
    }
  }

  Executor& executor_;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> waiting_;
  unsigned under_way_ = 0;
};

}  // namespace pif::lfs
