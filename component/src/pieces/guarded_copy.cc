#include "pieces/guarded_copy.h"

#include <csetjmp>
#include <csignal>

#include <atomic>

#include "pieces/copy_piece.h"
#include "pif/base/assert.h"
#include "pif/component/bus_error.h"

namespace pif::component {
namespace {

struct Guard {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  sigjmp_buf back;
};

// Of this thread: what it is copying to. The handler reads it: with this model the first use in a thread takes no
// memory, which a handler must not.
__attribute__((tls_model("initial-exec"))) thread_local std::atomic<Guard*> guard_now = nullptr;

struct sigaction action_before {};  // written once, before the handler is there

void on_bus_error(int signal, siginfo_t* info, void* context) {
  Guard* guard = guard_now.load(std::memory_order_relaxed);
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (guard != nullptr && is_fault(*info) && at >= guard->begin && at < guard->end) siglongjmp(guard->back, 1);
  pass_on(action_before, signal, info, context);
}

bool install() {
  if (::sigaction(SIGBUS, nullptr, &action_before) != 0) return false;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_mask = action_before.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (action_before.sa_flags & SA_RESTART);
  return ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

// A function of its own: no variable of it is used after the jump.
[[gnu::noinline]] bool copy_all(Guard& guard, std::span<const ConstExtent> pieces, std::uint64_t begin, std::byte* to) {
  if (sigsetjmp(guard.back, 0) != 0) return false;
  guard_now.store(&guard, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (const ConstExtent& piece : pieces) copy_piece(to + (piece.offset - begin), piece.at, piece.size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace

bool can_guard() {
  static const bool is_installed = install();
  struct sigaction now {};
  return is_installed && ::sigaction(SIGBUS, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == on_bus_error;
}

bool copy_guarded(std::span<const ConstExtent> pieces, std::uint64_t begin, std::span<std::byte> mapping) {
  if (pieces.empty()) return true;
  PIF_ASSERT(pieces.front().offset >= begin, pieces.front().offset, begin);
  PIF_ASSERT(pieces.back().offset + pieces.back().size - begin <= mapping.size(), pieces.back().offset, begin);
  Guard guard;
  guard.begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  guard.end = guard.begin + mapping.size();
  // The kernel ends a process whose thread blocks the signal of a fault.
  sigset_t bus, before;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  (void)::pthread_sigmask(SIG_UNBLOCK, &bus, &before);
  const bool is_done = copy_all(guard, pieces, begin, mapping.data());
  guard_now.store(nullptr, std::memory_order_relaxed);
  // Also what the handler had blocked when it jumped.
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_done;
}

}  // namespace pif::component
