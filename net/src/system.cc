#include "pif/net/system.h"
#include "pif/base/assert.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/random.h>
#include <time.h>

namespace pif::net {
namespace {

std::int64_t read_clock(clockid_t which, std::int64_t per_second) {
  timespec now{};
  clock_gettime(which, &now);
  return static_cast<std::int64_t>(now.tv_sec) * per_second + (per_second == 1 ? 0 : now.tv_nsec);
}

}  // namespace

Time SystemClock::now() const { return Time(Duration(read_clock(CLOCK_MONOTONIC, 1'000'000'000))); }
Time SystemClock::boottime() const { return Time(Duration(read_clock(CLOCK_BOOTTIME, 1'000'000'000))); }
std::int64_t SystemClock::wall_seconds() const { return read_clock(CLOCK_REALTIME, 1); }
std::int64_t SystemClock::wall_ns() const { return read_clock(CLOCK_REALTIME, 1'000'000'000); }

std::uint64_t SystemEntropy::next() {
  std::uint64_t out = 0;
  // Eight bytes are never cut short; only a signal before the kernel's pool is ready, at boot, can make this repeat.
  while (getrandom(&out, sizeof out, 0) != static_cast<ssize_t>(sizeof out)) continue;
  return out;
}

struct ThreadExecutor::Impl {
  struct Task {
    std::function<void()> work;
    std::function<void()> done;
  };

  Impl(Messenger& messenger, unsigned limit) : loop(messenger), threads_max(limit == 0 ? 1 : limit) {}

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      ++idle;
      wanted.wait(lock, [this] { return stopping || !queue.empty(); });
      PIF_ASSERT(idle > 0, idle);
      --idle;
      if (stopping) return;
      PIF_ASSERT(!queue.empty() && running < threads_max, queue.size(), running, threads_max);
      Task task = std::move(queue.front());
      queue.pop_front();
      ++running;
      lock.unlock();
      task.work();
      task.work = nullptr;  // what it captured dies here, not on the loop's thread
      lock.lock();
      finished.push_back(std::move(task.done));
      PIF_ASSERT(running > 0, running);
      --running;
      ended.notify_all();
      lock.unlock();
      loop.wake();
      lock.lock();
    }
  }

  Messenger& loop;
  const unsigned threads_max;
  std::vector<std::thread> threads;  // the loop's thread only
  std::mutex mutex;                  // guards all below
  std::condition_variable ended;
  std::condition_variable wanted;
  std::deque<Task> queue;
  std::vector<std::function<void()>> finished;
  unsigned idle = 0;
  unsigned running = 0;  // works
  bool stopping = false;
};

ThreadExecutor::ThreadExecutor(Messenger& loop, unsigned threads) : impl_(std::make_unique<Impl>(loop, threads)) {}

ThreadExecutor::~ThreadExecutor() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wanted.notify_all();
  for (auto& thread : impl_->threads) thread.join();
}

void ThreadExecutor::submit(std::function<void()> work, std::function<void()> done) {
  bool start_one = false;
  {
    const std::lock_guard lock(impl_->mutex);
    PIF_ASSERT(!impl_->stopping && impl_->threads.size() <= impl_->threads_max, impl_->threads.size());
    impl_->queue.push_back({std::move(work), std::move(done)});
    start_one = impl_->idle < impl_->queue.size() && impl_->threads.size() < impl_->threads_max;
  }
  if (start_one) impl_->threads.emplace_back([this] { impl_->run(); });
  impl_->wanted.notify_one();
}

void ThreadExecutor::drain() {
  std::unique_lock lock(impl_->mutex);
  const auto queue = std::exchange(impl_->queue, {});
  impl_->ended.wait(lock, [this] { return impl_->running == 0; });
  const auto finished = std::exchange(impl_->finished, {});
  lock.unlock();  // what they hold dies without it
}

void ThreadExecutor::run_completions() {
  std::vector<std::function<void()>> ready;
  {
    const std::lock_guard lock(impl_->mutex);
    ready.swap(impl_->finished);
  }
  for (auto& done : ready) done();
}

void tune_allocator() {
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // longest record and its frame come from the heap, so their pages stay warm
  mallopt(M_TRIM_THRESHOLD, 64 * kMiB);
  mallopt(M_ARENA_MAX, 2);
}

}  // namespace pif::net
