// A few threads that share the work of one transfer, or do what was started and is waited for later. They touch
// descriptors and memory only, never the messenger.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace pif::client {

class Pool {
 public:
  explicit Pool(unsigned threads) : helpers_wanted_(threads > 0 ? threads - 1 : 0) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  unsigned threads() const { return helpers_wanted_ + 1; }
  // Runs work(0) ... work(count - 1), the caller's thread included, and returns when all have returned. An exception on
  // the caller's thread goes on from here when the other threads have returned.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

  // Work that is started, and goes on while its owner does other things. It stays where it is until it is done.
  class Task {
   public:
    explicit Task(std::function<void()> work) : work_(std::move(work)) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    bool is_done() const { return is_done_.load(std::memory_order_acquire); }

   private:
    friend class Pool;
    enum class State : std::uint8_t { kNew, kQueued, kRunning, kDone };
    const std::function<void()> work_;
    State state_ = State::kNew;  // guarded by the pool's mutex
    std::atomic<bool> is_done_{false};
  };
  using Tasks = std::deque<Task>;
  // Runs it on another thread as soon as one is free; where the pool has no other, here and now.
  void start(Task& task);
  // Here and now.
  static void run_here(Task& task);
  // Here and now, if it was started and no other thread has begun it; else nothing is done, and false.
  bool run_if_queued(Task& task);
  // Returns when all are done, which were all started: runs here what no other thread has begun. An exception here goes
  // on to the caller, and others of them may not be done then.
  void finish(Tasks& tasks);
  // Returns when none of them runs: what has not begun is not done at all.
  void cancel(Tasks& tasks);

 private:
  struct Turn;
  struct TaskTurn;
  void start_helpers();
  void note_work() { has_work_ = next_ < count_ || !queue_.empty(); }
  void help();
  void run_task(std::unique_lock<std::mutex>& lock, Task& task);
  void unqueue(Task& task);
  void wait_for_task(std::unique_lock<std::mutex>& lock, const Task& task);
  void take_turns(std::unique_lock<std::mutex>& lock);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void wait_for_helpers(std::unique_lock<std::mutex>& lock);

  const unsigned helpers_wanted_;
  std::vector<std::thread> helpers_;  // started with the first work
  std::mutex mutex_;                  // guards all below
  std::condition_variable more_;
  std::condition_variable finished_;
  std::atomic<bool> has_work_{false};  // what those see who look without the lock
  std::atomic<bool> is_done_{false};
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  std::size_t running_ = 0;
  std::deque<Task*> queue_;  // started, and not begun
  std::size_t asleep_ = 0;
  bool stopping_ = false;
};

}  // namespace pif::client
