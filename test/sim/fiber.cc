#include "sim/fiber.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#include <semaphore>
#include <thread>

namespace pif::sim {

struct Fiber::Context {
  std::function<void()> body;
  std::binary_semaphore inside{0};
  std::binary_semaphore outside{0};
  std::thread thread;
};

Fiber::Fiber(std::function<void()> body) : context_(std::make_unique<Context>()) { context_->body = std::move(body); }

Fiber::~Fiber() {
  if (context_->thread.joinable()) context_->thread.join();
}

void Fiber::resume() {
  Context& c = *context_;
  if (c.thread.joinable()) {
    c.inside.release();
  } else {
    c.thread = std::thread([&c] {
      c.body();
      c.outside.release();
    });
  }
  c.outside.acquire();
}

void Fiber::suspend() {
  context_->outside.release();
  context_->inside.acquire();
}

}  // namespace pif::sim

#else

#include <cxxabi.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace pif::sim {
namespace {

constexpr std::size_t kStackBytes = 1u << 20;
constexpr std::size_t kGuardBytes = 4096;

// Stacks are used again: a fresh one costs more than a short fiber.
class Stacks {
 public:
  ~Stacks() {
    for (void* stack : free_) ::munmap(stack, kStackBytes);
  }
  void* take() {
    if (free_.empty()) return fresh();
    void* stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(void* stack) { free_.push_back(stack); }

 private:
  static void* fresh() {
    void* stack =
        ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) throw std::bad_alloc();
    ::mprotect(stack, kGuardBytes, PROT_NONE);
    return stack;
  }
  std::vector<void*> free_;
};

Stacks& stacks() {
  static thread_local Stacks all;
  return all;
}

// Which exceptions are in flight belongs to the stack, not to the thread.
struct Exceptions {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

void exchange_exceptions(Exceptions& with) {
  auto* globals = abi::__cxa_get_globals();
  Exceptions now;
  std::memcpy(&now, static_cast<void*>(globals), sizeof now);
  std::memcpy(static_cast<void*>(globals), &with, sizeof with);
  with = now;
}

}  // namespace

// Switching is by setjmp, which asks nothing of the kernel; only the first switch to a new stack needs more.
struct Fiber::Context {
  std::function<void()> body;
  void* stack = nullptr;
  bool started = false;
  bool ended = false;
  ucontext_t first{};
  jmp_buf inside;
  jmp_buf outside;
  Exceptions exceptions;
};

namespace {

void enter(unsigned high, unsigned low) {
  auto* context = reinterpret_cast<Fiber::Context*>((static_cast<std::uintptr_t>(high) << 32) | low);
  context->body();
  context->ended = true;
  _longjmp(context->outside, 1);
}

void begin(Fiber::Context& c) {
  c.started = true;
  c.stack = stacks().take();
  ::getcontext(&c.first);
  c.first.uc_stack.ss_sp = c.stack;
  c.first.uc_stack.ss_size = kStackBytes;
  c.first.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(&c);
  ::makecontext(&c.first, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  ::setcontext(&c.first);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : context_(std::make_unique<Context>()) { context_->body = std::move(body); }

Fiber::~Fiber() {
  if (context_->stack != nullptr) stacks().give_back(context_->stack);
}

void Fiber::resume() {
  exchange_exceptions(context_->exceptions);
  if (_setjmp(context_->outside) == 0) {
    if (context_->started) _longjmp(context_->inside, 1);
    begin(*context_);
  }
  exchange_exceptions(context_->exceptions);
}

void Fiber::suspend() {
  if (_setjmp(context_->inside) == 0) _longjmp(context_->outside, 1);
}

}  // namespace pif::sim

#endif
