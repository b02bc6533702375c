#include "session/pool.h"

#include <algorithm>
#include <chrono>

#include "pif/base/assert.h"

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
    PIF_ASSERT(queue_.empty(), queue_.size());
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
    if (next_ == count_) note_work();
    PIF_ASSERT(work_ != nullptr && next_ <= count_, next_, count_);
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
  more_.wait(lock, [this] { return stopping_ || next_ < count_ || !queue_.empty(); });
  PIF_ASSERT(asleep_ > 0 && asleep_ <= helpers_wanted_, asleep_, helpers_wanted_);
  --asleep_;
}

void Pool::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    wait_for_work(lock);
    if (stopping_) return;
    if (next_ == count_) {  // nobody stands still for a task
      if (!queue_.empty()) run_task(lock, *queue_.front());
      continue;
    }
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
  PIF_ASSERT(next_ == count_, next_, count_);
  work_ = nullptr;
  count_ = next_ = 0;
}

void Pool::start_helpers() {
  PIF_ASSERT(helpers_.size() <= helpers_wanted_, helpers_.size(), helpers_wanted_);
  while (helpers_.size() < helpers_wanted_) helpers_.emplace_back([this] { help(); });
}

void Pool::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count <= 1 || helpers_wanted_ == 0) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  start_helpers();
  std::unique_lock lock(mutex_);
  PIF_ASSERT(work_ == nullptr && running_ == 0 && next_ == count_, running_, next_, count_);
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
    note_work();
    wait_for_helpers(lock);
    throw;
  }
  wait_for_helpers(lock);
}

// ---- tasks ---------------------------------------------------------------------------------------------------------

// As Turn. It counts as done however it ends.
struct Pool::TaskTurn {
  TaskTurn(std::unique_lock<std::mutex>& lock_of_pool, Task& task_to_run) : lock(lock_of_pool), task(task_to_run) {
    task.state_ = Task::State::kRunning;
    lock.unlock();
  }
  ~TaskTurn() {
    lock.lock();
    task.state_ = Task::State::kDone;
    task.is_done_.store(true, std::memory_order_release);
  }
  std::unique_lock<std::mutex>& lock;
  Task& task;
};

void Pool::unqueue(Task& task) {
  const auto found = std::find(queue_.begin(), queue_.end(), &task);
  PIF_ASSERT(found != queue_.end(), queue_.size());
  queue_.erase(found);
  note_work();
}

// The task may be gone when this returns: its owner looks at is_done() without the lock.
void Pool::run_task(std::unique_lock<std::mutex>& lock, Task& task) {
  unqueue(task);
  {
    const TaskTurn turn(lock, task);
    task.work_();
  }
  finished_.notify_one();
}

void Pool::wait_for_task(std::unique_lock<std::mutex>& lock, const Task& task) {
  if (task.state_ == Task::State::kDone) return;
  lock.unlock();
  look_for(task.is_done_);
  lock.lock();
  finished_.wait(lock, [&task] { return task.state_ == Task::State::kDone; });
}

void Pool::run_here(Task& task) {
  PIF_ASSERT(task.state_ == Task::State::kNew, task.state_);
  task.work_();
  task.state_ = Task::State::kDone;
  task.is_done_ = true;
}

void Pool::start(Task& task) {
  PIF_ASSERT(task.state_ == Task::State::kNew, task.state_);
  if (helpers_wanted_ == 0) return run_here(task);
  start_helpers();
  const std::lock_guard lock(mutex_);
  task.state_ = Task::State::kQueued;
  queue_.push_back(&task);
  note_work();
  if (asleep_ > 0) more_.notify_one();
}

bool Pool::run_if_queued(Task& task) {
  std::unique_lock lock(mutex_);
  if (task.state_ != Task::State::kQueued) return false;
  run_task(lock, task);
  return true;
}

// The others begin at the front.
void Pool::finish(Tasks& tasks) {
  std::unique_lock lock(mutex_);
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    PIF_ASSERT(task->state_ != Task::State::kNew, tasks.size());
    if (task->state_ == Task::State::kQueued) run_task(lock, *task);
  }
  for (const Task& task : tasks) wait_for_task(lock, task);
}

void Pool::cancel(Tasks& tasks) {
  std::unique_lock lock(mutex_);
  for (Task& task : tasks) {
    if (task.state_ == Task::State::kNew) task.state_ = Task::State::kDone;
    if (task.state_ != Task::State::kQueued) continue;
    unqueue(task);
    task.state_ = Task::State::kDone;
  }
  for (const Task& task : tasks) wait_for_task(lock, task);
}

}  // namespace pif::client
