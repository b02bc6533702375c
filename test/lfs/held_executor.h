// An executor whose work waits until a test says so.
#pragma once

#include <deque>
#include <utility>

#include "pif/base/executor.h"

namespace pif::lfs::test {

class HeldExecutor final : public Executor {
 public:
  void submit(std::function<void()> work, std::function<void()> done) override {
    if (left_ > 0) {
      --left_;
      held_.emplace_back(std::move(work), std::move(done));
      return;
    }
    work();
    done();
  }
  void drain() override { held_.clear(); }
  // What is submitted next is held, as many times; everything else is done at once.
  void hold(std::size_t count = SIZE_MAX) { left_ = count; }
  std::size_t held() const { return held_.size(); }
  // Does what is held, in that order, and holds nothing more.
  void release() {
    left_ = 0;
    const auto all = std::exchange(held_, {});
    for (const auto& [work, done] : all) work();
    for (const auto& [work, done] : all) done();
  }

 private:
  std::size_t left_ = 0;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> held_;
};

}  // namespace pif::lfs::test
