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

// One item: the lock is not held during it. It may end by what it throws.
struct Pool::Turn {
  Turn(std::unique_lock<std::mutex>& lock_of_pool, std::size_t& running_in_pool)
      : lock(lock_of_pool), running(running_in_pool) {
    ++running;
    lock.unlock();
  }
  ~Turn() {
    lock.lock();
    --running;
  }
  std::unique_lock<std::mutex>& lock;
  std::size_t& running;
};

// Takes items until none are left.
void Pool::take_turns(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const std::size_t index = next_++;
    if (next_ == count_) has_work_ = false;
    const auto* work = work_;
    const Turn turn(lock, running_);
    (*work)(index);
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

void Pool::wait_for_helpers(std::unique_lock<std::mutex>& lock) {
  if (running_ > 0) {
    lock.unlock();
    look_for(is_done_);
    lock.lock();
  }
  finished_.wait(lock, [this] { return running_ == 0; });
  work_ = nullptr;
  count_ = next_ = 0;
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
  try {
    take_turns(lock);
  } catch (...) {  // helpers use what is on this thread's stack
    next_ = count_;
    has_work_ = false;
    wait_for_helpers(lock);
    throw;
  }
  wait_for_helpers(lock);
}

}  // namespace pif::client
