#include "command/interrupt.h"

#include <csignal>

namespace pif::cli {
namespace {

// A signal handler can reach nothing but a variable of static life.
std::atomic<bool> interrupted{false};
std::atomic<int> by_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note_signal(int signal) {
  by_signal = signal;
  interrupted = true;
}

void note(int signal) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART: a read of a silent pipe ends
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) note(signal);
  return interrupted;
}

Status check_interrupt() {
  if (interrupted) return fail(Code::kCancelled, "interrupted; nothing of the unfinished file was kept");
  return {};
}

void die_of_interrupt() {
  const int signal = by_signal;
  if (signal == 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace pif::cli
