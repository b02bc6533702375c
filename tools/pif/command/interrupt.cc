#include "command/interrupt.h"

#include <csignal>

namespace pif::cli {
namespace {

// A signal handler can reach nothing but a variable of static life.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note_signal(int) { interrupted = true; }

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART: a read of a silent pipe ends
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

Status check_interrupt() {
  if (interrupted) return fail(Code::kCancelled, "interrupted; nothing of the unfinished file was kept");
  return {};
}

}  // namespace pif::cli
