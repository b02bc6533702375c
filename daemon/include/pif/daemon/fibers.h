// The operations of a daemon, each as straight code on a fiber that waits in place. One thread, the daemon's loop.
//
// Laws: (1) After a wait nothing that was looked at before holds, unless a lock says so; Fresh checks it where it
// matters. (2) Every wait ends: by what it waits for, or by a time. (3) No fiber waits inside a lock of the system, a
// transaction, or a loop over a container that others change.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pif/base/assert.h"
#include "pif/base/clock.h"
#include "pif/base/executor.h"
#include "pif/daemon/fiber.h"

namespace pif::daemon {

class Fibers {
 public:
  // Which of `count` fibers that are ready goes on next. A simulation chooses by its seed.
  using Pick = std::function<std::size_t(std::size_t count)>;
  // One wait of one fiber. It is never used again.
  enum class WaitId : std::uint64_t {};

  // clock outlives it. pick: empty: in the order in which they became ready.
  explicit Fibers(const Clock& clock, Pick pick = {});
  // end_all() was called, or all have ended.
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Starts a fiber that runs `body`, and returns whether it has ended. The loop's call runs it at once, until it waits
  // or ends; a fiber's call makes it ready. An exception that leaves the body is thrown here or by run().
  bool start(std::function<void()> body);
  // The same with a member function of `object`, which outlives the fiber. args: copied, and given to it.
  template <auto kMethod, typename Object, typename... Args>
  bool start(Object& object, Args... args) {
    return start([&object, ... args = std::move(args)]() mutable { (object.*kMethod)(args...); });
  }
  // Lets everybody go on who can, also those whose time has come, until all wait.
  void run();
  // When run() has something to do by itself: Time::min() at once, kNever not at all.
  Time next_deadline() const;
  // Ends all fibers: each leaves the function in which it waits, by an exception that only this class catches, and
  // destructors run. From then on there are none. Work that refers to their stacks has ended before.
  void end_all();
  // So many have begun and not ended.
  std::size_t count() const { return tasks_.size() - idle_.size(); }
  // So many stacks are there, of them and for others.
  std::size_t kept() const { return tasks_.size(); }
  // The clock of all times here.
  const Clock& clock() const { return clock_; }

  // ---- called by a fiber ----
  // Whether a fiber runs at the moment.
  bool in_fiber() const { return current_ != nullptr; }
  // So often the running fiber has waited, or may have.
  std::uint64_t waits() const;
  // Announces a wait, which wake() can end from now on.
  WaitId begin_wait();
  // Until wake(id), cancel(id), or until then. True: by wake().
  bool wait(WaitId id, Time until = kNever);
  void sleep_until(Time until);
  // Until all others have gone as far as they can: whatever they ask for by then is done together.
  void settle();

  // ---- called by everybody ----
  // No effect on a wait that has ended.
  void wake(WaitId id);
  // The same; wait() says false.
  void cancel(WaitId id);

 private:
  struct Task;
  struct Waiting {
    Task* task = nullptr;
    std::optional<bool> result;  // it was ended before it began
    bool is_parked = false;      // it has given up control
    Time until = kNever;
  };
  struct Ended {};  // thrown through a fiber that is to end

  Task* idle_task();
  void resume(Task& task);
  void live(Task& task);
  void park();
  void end_wait(std::uint64_t key, bool result);
  void rethrow();
  void drop_idle();

  const Clock& clock_;
  const Pick pick_;
  FiberStacks stacks_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Task*> idle_;  // their bodies have ended; each is used again
  std::deque<Task*> ready_;
  std::vector<Task*> settling_;
  std::unordered_map<std::uint64_t, Waiting> waiting_;  // by wait
  std::set<std::pair<Time, std::uint64_t>> deadlines_;  // of those
  std::uint64_t last_wait_ = 0;
  Task* current_ = nullptr;
  bool is_ending_ = false;
  std::exception_ptr failure_;
};

// Waits for a call back: `begin` gets a function, and hands it to who will call it once, now or later, on this thread.
// A fiber that is ended meanwhile does not mind a call that comes then.
template <typename T>
T await(Fibers& fibers, const std::function<void(std::function<void(T)> done)>& begin) {
  struct State {
    std::optional<T> result;
  };
  const auto state = std::make_shared<State>();
  const auto id = fibers.begin_wait();
  begin([state, id, &fibers](T result) {
    PIF_ASSERT(!state->result.has_value());
    state->result = std::move(result);
    fibers.wake(id);
  });
  fibers.wait(id);
  PIF_ASSERT(state->result.has_value());
  return std::move(*state->result);
}

// Runs `work` away from the loop, and returns what it returns. It may refer to what is on the fiber's stack: who ends
// fibers drains the executor before.
template <typename Work>
auto disk(Fibers& fibers, Executor& executor, Work work) {
  using T = decltype(work());
  const auto id = fibers.begin_wait();
  if constexpr (std::is_void_v<T>) {
    executor.submit([&work] { work(); }, [&fibers, id] { fibers.wake(id); });
    fibers.wait(id);
  } else {
    std::optional<T> result;
    executor.submit([&work, &result] { result.emplace(work()); }, [&fibers, id] { fibers.wake(id); });
    fibers.wait(id);
    PIF_ASSERT(result.has_value());
    return std::move(*result);
  }
}

// Calls `one` with 0 to count - 1, at most `at_once` of them at the same time, each on a fiber; returns when all have
// ended. Called by a fiber.
void each(Fibers& fibers, std::size_t count, std::size_t at_once, const std::function<void(std::size_t index)>& one);

// Something that many may wait for, again and again: a newer view, room in a queue.
class Event {
 public:
  // fibers outlives it.
  explicit Event(Fibers& fibers) : fibers_(fibers) {}
  // Until notify(), or until then. False: by the time. Called by a fiber.
  bool wait(Time until = kNever);
  // notify() ends this wait, too, which others may end as well. The caller of add() calls remove() after the wait.
  void add(Fibers::WaitId id) { waiting_.push_back(id); }
  // No effect on what is not there any more.
  void remove(Fibers::WaitId id) { std::erase(waiting_, id); }
  // All who wait now go on.
  void notify();
  // Whether notify() would wake somebody.
  bool has_waiters() const { return !waiting_.empty(); }

 private:
  Fibers& fibers_;
  std::vector<Fibers::WaitId> waiting_;
};

// So many may do something at once; others wait, first come first served.
class Slots {
 public:
  // A place, given back at its end.
  class Held {
   public:
    // By acquire().
    explicit Held(Slots& slots) : slots_(&slots) {}
    // other has none any more.
    Held(Held&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (slots_ != nullptr) slots_->release();
    }

   private:
    Slots* slots_;
  };

  // fibers outlives it. count: at once.
  Slots(Fibers& fibers, unsigned count) : fibers_(fibers), free_(count) {}
  // Called by a fiber. It outlives what it gives.
  [[nodiscard]] Held acquire();

 private:
  void release();
  Fibers& fibers_;
  unsigned free_;
  std::deque<Fibers::WaitId> waiting_;  // each gets the place of one that ends
};

// Calls a function at the end of a scope, also where the fiber is ended.
template <typename Function>
class AtExit {
 public:
  // function: does not wait.
  explicit AtExit(Function function) : function_(std::move(function)) {}
  // Calls it.
  ~AtExit() { function_(); }
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;

 private:
  Function function_;
};

// A value that holds only until the fiber waits: to use it after that is a mistake, and ends the process.
template <typename T>
class Fresh {
 public:
  // Called by a fiber; fibers outlives it.
  Fresh(const Fibers& fibers, T value) : fibers_(fibers), at_(fibers.waits()), value_(std::move(value)) {}
  // Before the fiber waits.
  const T& operator*() const { return get(); }
  // The same.
  const T* operator->() const { return &get(); }

 private:
  const T& get() const {
    PIF_ASSERT(fibers_.waits() == at_, fibers_.waits(), at_);
    return value_;
  }
  const Fibers& fibers_;
  const std::uint64_t at_;
  T value_;
};

}  // namespace pif::daemon
