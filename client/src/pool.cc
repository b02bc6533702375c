#include "pool.h"

namespace pif::client {

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

// Takes items until none are left. The lock is held between items, not during one.
void Pool::take_turns(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const std::size_t index = next_++;
    const auto* work = work_;
    ++running_;
    lock.unlock();
    (*work)(index);
    lock.lock();
    --running_;
  }
}

void Pool::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [this] { return stopping_ || next_ < count_; });
    if (stopping_) return;
    take_turns(lock);
    if (running_ == 0) finished_.notify_one();
  }
}

void Pool::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count <= 1 || helpers_wanted_ == 0) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  while (helpers_.size() < helpers_wanted_) helpers_.emplace_back([this] { help(); });
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = 0;
  count_ = count;
  more_.notify_all();
  take_turns(lock);
  finished_.wait(lock, [this] { return running_ == 0; });
  work_ = nullptr;
  count_ = next_ = 0;
}

}  // namespace pif::client
