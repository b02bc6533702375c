#include "interrupt.h"

#include <csignal>

namespace pif::cli {
namespace {

// A signal handler can reach nothing but a variable of static life.
volatile std::sig_atomic_t interrupted = 0;

void note_signal(int) { interrupted = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART: a read of a silent pipe ends
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Status check_interrupt() {
  if (interrupted != 0) return fail(Code::kCancelled, "interrupted; nothing of the unfinished file was kept");
  return {};
}

}  // namespace pif::cli
