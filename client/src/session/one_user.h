// The user of a Session: one thread at a time, of the process that made it. Two threads at once would wait for each
// other's answers for ever, and a forked child would take what its parent waits for: both get an error instead. It
// costs a few nanoseconds, and looks, in release builds, without a lock: two threads that enter in the same instant may
// be missed. And whether anybody may: nobody, once an assertion broke.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "pif/base/result.h"

namespace pif::client {

class OneUser {
 public:
  OneUser();
  ~OneUser();
  OneUser(const OneUser&) = delete;
  OneUser& operator=(const OneUser&) = delete;

  // Whether this is a child (fork) of the process that made it: what is here belongs to the parent.
  bool is_in_child() const { return mark_ != nullptr && *mark_ == 0; }
  // An assertion broke in a call, with this text: what is here may be wrong, and nothing more is done with it.
  void set_broken(std::string text) { broken_ = std::move(text); }
  bool is_broken() const { return !broken_.empty(); }

 private:
  friend class Use;
  std::atomic<const void*> thread_ = nullptr;  // that is inside
  const volatile char* mark_ = nullptr;        // not 0; in a child the kernel makes it 0
  std::string broken_;                         // text of the assertion that broke
};

// From here to its end this thread is inside; calls inside calls are the same thread's.
class Use {
 public:
  // kInvalid in a child, and (in debug builds the program ends) while another thread is inside; kInternal once an
  // assertion broke.
  [[nodiscard]] static Result<Use> begin(OneUser& user) {
    static thread_local const char kThisThread = 0;
    if (user.is_in_child()) [[unlikely]]
      return fail(in_child());
    const void* const before = enter(user.thread_, &kThisThread);
    if (before != nullptr && before != &kThisThread) [[unlikely]]
      return fail(in_two_threads());
    Use use(user.thread_, before);
    if (user.is_broken()) [[unlikely]]
      return fail(Code::kInternal, user.broken_);
    return use;
  }
  Use(Use&& other) noexcept : thread_(std::exchange(other.thread_, nullptr)), before_(other.before_) {}
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (thread_ != nullptr) thread_->store(before_, std::memory_order_relaxed);
  }

 private:
  Use(std::atomic<const void*>& thread, const void* before) : thread_(&thread), before_(before) {}
  // Returns who was inside; `me` enters only if nobody was.
  static const void* enter(std::atomic<const void*>& thread, const void* me) {
    const void* before = thread.load(std::memory_order_relaxed);
    if (before == me) return before;
#ifdef NDEBUG
    if (before == nullptr) thread.store(me, std::memory_order_relaxed);
#else
    before = nullptr;
    thread.compare_exchange_strong(before, me, std::memory_order_relaxed);
#endif
    return before;
  }
  static Error in_child();
  static Error in_two_threads();

  std::atomic<const void*>* thread_;
  const void* before_;
};

}  // namespace pif::client
