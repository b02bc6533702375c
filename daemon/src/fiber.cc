#include "pif/daemon/fiber.h"

#include "pif/base/assert.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#include <semaphore>
#include <thread>

namespace pif::daemon {

struct Fiber::Context {
  std::function<void()> body;
  std::binary_semaphore inside{0};
  std::binary_semaphore outside{0};
  std::thread thread;
};

FiberStacks::~FiberStacks() = default;

Fiber::Fiber(FiberStacks&, std::function<void()> body) : context_(std::make_unique<Context>()) {
  context_->body = std::move(body);
}

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

}  // namespace pif::daemon

#else

#include <cxxabi.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace pif::daemon {
namespace {

constexpr std::size_t kPageBytes = 4096;  // also of the guard

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

FiberStacks::~FiberStacks() {
  PIF_ASSERT(taken_ == 0, taken_);
  for (void* stack : free_) unmap(stack);
}

void* FiberStacks::take() {
  ++taken_;
  if (free_.empty()) return fresh();
  void* stack = free_.back();
  free_.pop_back();
  return stack;
}

void FiberStacks::give_back(void* stack) {
  PIF_ASSERT(taken_ > 0);
  --taken_;
  if (free_.size() < kept_max_)
    free_.push_back(stack);
  else
    unmap(stack);
}

void* FiberStacks::fresh() const {
  void* stack = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || ::mprotect(stack, kPageBytes, PROT_NONE) != 0) throw std::bad_alloc();
  return stack;
}

// The kernel knows which pages were ever used. A fiber that comes near the guard page is a mistake in the code.
void FiberStacks::unmap(void* stack) {
  std::vector<unsigned char> pages(bytes_ / kPageBytes);
  if (::mincore(stack, bytes_, pages.data()) == 0) {
    const auto first = std::find_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
    used_max_ = std::max(used_max_, static_cast<std::size_t>(pages.end() - first) * kPageBytes);
    PIF_ASSERT(used_max_ <= bytes_ / 2, used_max_, bytes_);
  }
  ::munmap(stack, bytes_);
}

// Switching is by setjmp, which asks nothing of the kernel; only the first switch to a new stack needs more.
struct Fiber::Context {
  FiberStacks& stacks;
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
  ::getcontext(&c.first);
  c.first.uc_stack.ss_sp = c.stack;
  c.first.uc_stack.ss_size = c.stacks.bytes();
  c.first.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(&c);
  ::makecontext(&c.first, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  ::setcontext(&c.first);
}

}  // namespace

Fiber::Fiber(FiberStacks& stacks, std::function<void()> body) : context_(new Context{.stacks = stacks}) {
  context_->body = std::move(body);
}

Fiber::~Fiber() {
  if (context_->stack == nullptr) return;
  PIF_ASSERT(context_->ended);
  context_->stacks.give_back(context_->stack);
}

void Fiber::resume() {
  exchange_exceptions(context_->exceptions);
  if (_setjmp(context_->outside) == 0) {
    if (context_->started) _longjmp(context_->inside, 1);
    context_->stack = context_->stacks.take();
    begin(*context_);
  }
  exchange_exceptions(context_->exceptions);
}

void Fiber::suspend() {
  if (_setjmp(context_->inside) == 0) _longjmp(context_->outside, 1);
}

}  // namespace pif::daemon

#endif
