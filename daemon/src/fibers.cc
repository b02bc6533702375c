#include "pif/daemon/fibers.h"

#include <algorithm>

namespace pif::daemon {
namespace {

constexpr std::size_t kStackBytes = 256u << 10;  // at most half of it is ever used (fiber.cc)
constexpr std::size_t kIdleMax = 256;            // fibers without a body that are kept

}  // namespace

// A fiber that runs one body after another.
struct Fibers::Task {
  std::function<void()> body;
  std::uint64_t waits = 0;
  bool has_ended = true;  // the body
  bool must_leave = false;
  bool result = false;  // of its last wait
  std::unique_ptr<Fiber> fiber;
};

Fibers::Fibers(const Clock& clock, Pick pick) : clock_(clock), pick_(std::move(pick)), stacks_(kStackBytes) {}

Fibers::~Fibers() {
  end_all();
  PIF_ASSERT(tasks_.empty() && waiting_.empty(), tasks_.size(), waiting_.size());
}

bool Fibers::start(std::function<void()> body) {
  PIF_ASSERT(body != nullptr && !is_ending_);
  Task& task = *idle_task();
  task.body = std::move(body);
  task.has_ended = false;
  if (current_ != nullptr) {
    ready_.push_back(&task);
    return false;
  }
  resume(task);
  const bool has_ended = task.has_ended;
  rethrow();
  return has_ended;
}

Fibers::Task* Fibers::idle_task() {
  if (idle_.empty()) {
    tasks_.push_back(std::make_unique<Task>());
    Task& task = *tasks_.back();
    task.fiber = std::make_unique<Fiber>(stacks_, [this, &task] { live(task); });
    return &task;
  }
  Task* const task = idle_.back();
  idle_.pop_back();
  return task;
}

void Fibers::live(Task& task) {
  while (!task.must_leave) {
    try {
      task.body();
    } catch (const Ended&) {
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
    task.body = nullptr;
    task.has_ended = true;
    if (is_ending_) return;
    task.fiber->suspend();
  }
  task.has_ended = true;
}

void Fibers::resume(Task& task) {
  Task* const before = std::exchange(current_, &task);
  task.fiber->resume();
  current_ = before;
  if (!task.has_ended || is_ending_) return;
  idle_.push_back(&task);
  PIF_ASSERT(idle_.size() <= tasks_.size(), idle_.size(), tasks_.size());
}

void Fibers::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Fibers::run() {
  PIF_ASSERT(current_ == nullptr);
  const Time now = clock_.now();  // who has his time later goes on in the next turn, so that this one ends
  for (;;) {
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) end_wait(deadlines_.begin()->second, false);
    if (ready_.empty()) {
      ready_.assign(settling_.begin(), settling_.end());
      settling_.clear();
    }
    if (ready_.empty()) return drop_idle();
    const std::size_t at = pick_ ? pick_(ready_.size()) : 0;
    PIF_ASSERT(at < ready_.size(), at, ready_.size());
    Task* const task = ready_[at];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    resume(*task);
    rethrow();
  }
}

void Fibers::drop_idle() {
  while (idle_.size() > kIdleMax) {
    Task* const task = idle_.back();
    idle_.pop_back();
    task->must_leave = true;
    task->fiber->resume();
    std::erase_if(tasks_, [task](const auto& one) { return one.get() == task; });
  }
}

Time Fibers::next_deadline() const {
  if (!ready_.empty() || !settling_.empty()) return Time::min();
  return deadlines_.empty() ? kNever : deadlines_.begin()->first;
}

void Fibers::end_all() {
  PIF_ASSERT(current_ == nullptr);
  is_ending_ = true;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {  // by index: nobody begins one, but asserts say so
    Task& task = *tasks_[i];
    task.must_leave = true;
    resume(task);
    PIF_ASSERT(task.has_ended);
  }
  ready_.clear();
  settling_.clear();
  waiting_.clear();
  deadlines_.clear();
  idle_.clear();
  tasks_.clear();
  is_ending_ = false;
}

std::uint64_t Fibers::waits() const {
  PIF_ASSERT(current_ != nullptr);
  return current_->waits;
}

Fibers::WaitId Fibers::begin_wait() {
  PIF_ASSERT(current_ != nullptr);  // who waits is a fiber
  waiting_[++last_wait_].task = current_;
  return WaitId{last_wait_};
}

void Fibers::park() {
  Task& task = *current_;
  if (is_ending_) throw Ended{};
  task.fiber->suspend();
  if (is_ending_) throw Ended{};
}

bool Fibers::wait(WaitId id, Time until) {
  const auto key = static_cast<std::uint64_t>(id);
  Task& task = *current_;
  ++task.waits;
  Waiting& waiting = waiting_.at(key);
  PIF_ASSERT(waiting.task == &task && !waiting.is_parked, key);
  if (waiting.result) {
    const bool result = *waiting.result;
    waiting_.erase(key);
    if (!pick_) return result;
    ready_.push_back(&task);  // a simulation switches at every wait
    park();
    return result;
  }
  waiting.is_parked = true;
  waiting.until = until;
  if (until != kNever) deadlines_.emplace(until, key);
  park();
  return task.result;
}

void Fibers::wake(WaitId id) { end_wait(static_cast<std::uint64_t>(id), true); }
void Fibers::cancel(WaitId id) { end_wait(static_cast<std::uint64_t>(id), false); }

void Fibers::end_wait(std::uint64_t key, bool result) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  if (!found->second.is_parked) {
    if (!found->second.result) found->second.result = result;
    return;
  }
  deadlines_.erase({found->second.until, key});
  found->second.task->result = result;
  ready_.push_back(found->second.task);
  waiting_.erase(found);
}

void Fibers::sleep_until(Time until) { (void)wait(begin_wait(), until); }

void Fibers::settle() {
  PIF_ASSERT(current_ != nullptr);
  ++current_->waits;
  settling_.push_back(current_);
  park();
}

void each(Fibers& fibers, std::size_t count, std::size_t at_once, const std::function<void(std::size_t)>& one) {
  if (count == 0) return;
  std::size_t next = 0, running = std::min(count, at_once);
  PIF_ASSERT(running > 0, at_once);
  const auto id = fibers.begin_wait();
  for (std::size_t i = running; i > 0; --i)
    fibers.start([&] {
      while (next < count) one(next++);
      if (--running == 0) fibers.wake(id);
    });
  fibers.wait(id);
  PIF_ASSERT(next == count && running == 0, next, count);
}

bool Event::wait(Time until) {
  const auto id = fibers_.begin_wait();
  add(id);
  const bool woken = fibers_.wait(id, until);
  if (!woken) remove(id);
  return woken;
}

void Event::notify() {
  for (const auto id : std::exchange(waiting_, {})) fibers_.wake(id);
}

Slots::Held Slots::acquire() {
  if (free_ > 0) {
    --free_;
  } else {
    const auto id = fibers_.begin_wait();
    waiting_.push_back(id);
    fibers_.wait(id);
  }
  return Held(*this);
}

void Slots::release() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  fibers_.wake(waiting_.front());
  waiting_.pop_front();
}

}  // namespace pif::daemon
