#include "session/pool.h"

#include <chrono>

namespace pif::client {

namespace {

// A batch of a few hundred KiB takes 30 us, waking a thread 5 to 50: so a thread looks for a while before it sleeps,
// and lets others run between two looks.
constexpr auto kLookFor = std::chrono::microseconds(50);

void look_for(const std::atomic<bool>& sign) {
  const auto until = std::chrono::steady_clock::now() + kLookFor;
  while (!sign.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

}  // namespace

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
    if (next_ == count_) has_work_ = false;
    const auto* work = work_;
    ++running_;
    lock.unlock();
    (*work)(index);
    lock.lock();
    --running_;
  }
}

void Pool::wait_for_work(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  look_for(has_work_);
  lock.lock();
  ++asleep_;
  more_.wait(lock, [this] { return stopping_ || next_ < count_; });
  --asleep_;
}

void Pool::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    wait_for_work(lock);
    if (stopping_) return;
    take_turns(lock);
    if (running_ > 0) continue;
    is_done_ = true;
    finished_.notify_one();
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
  is_done_ = false;
  has_work_ = true;
  if (asleep_ > 0) more_.notify_all();
  take_turns(lock);
  if (running_ > 0) {
    lock.unlock();
    look_for(is_done_);
    lock.lock();
  }
  finished_.wait(lock, [this] { return running_ == 0; });
  work_ = nullptr;
  count_ = next_ = 0;
}

}  // namespace pif::client
