// A few threads that share the work of one transfer. They touch descriptors and memory only, never the messenger.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pif::client {

class Pool {
 public:
  explicit Pool(unsigned threads) : helpers_wanted_(threads > 0 ? threads - 1 : 0) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  unsigned threads() const { return helpers_wanted_ + 1; }
  // Runs work(0) ... work(count - 1), the caller's thread included, and returns when all have returned. What is thrown
  // on the caller's thread goes on from here when the other threads have returned.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  struct Turn;
  void help();
  void take_turns(std::unique_lock<std::mutex>& lock);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void wait_for_helpers(std::unique_lock<std::mutex>& lock);

  const unsigned helpers_wanted_;
  std::vector<std::thread> helpers_;  // started at the first run
  std::mutex mutex_;                  // guards all below
  std::condition_variable more_;
  std::condition_variable finished_;
  std::atomic<bool> has_work_{false};  // what those see who look without the lock
  std::atomic<bool> is_done_{false};
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  std::size_t running_ = 0;
  std::size_t asleep_ = 0;
  bool stopping_ = false;
};

}  // namespace pif::client
