// Wakes a thread that otherwise looks now and then. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>

#include "pif/base/clock.h"

namespace pif::mount {

class Alarm {
 public:
  // wait() returns at once.
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      rings_ = true;
    }
    woken_.notify_all();
  }
  // From now on wait() returns false.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    woken_.notify_all();
  }
  bool wait(Duration at_most) {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, at_most, [this] { return rings_ || ends_; });
    rings_ = false;
    return !ends_;
  }

 private:
  std::mutex mutex_;  // guards rings_, ends_
  std::condition_variable woken_;
  bool rings_ = false;
  bool ends_ = false;
};

}  // namespace pif::mount
