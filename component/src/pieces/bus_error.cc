#include "pif/component/bus_error.h"

namespace pif::component {

bool is_fault(const siginfo_t& info) { return info.si_code > 0 && info.si_code != BUS_MCEERR_AO; }

// Only calls that a handler may make.
void pass_on(const struct sigaction& before, int signal, siginfo_t* info, void* context) {
  const bool is_default = before.sa_handler == SIG_DFL;
  const bool is_ignored = before.sa_handler == SIG_IGN;
  if (!is_default && !is_ignored) {
    if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
    return before.sa_handler(signal);
  }
  if (is_ignored && !is_fault(*info)) return;
  // The kernel ends a process that ignores a fault, too.
  struct sigaction end {};
  end.sa_handler = SIG_DFL;
  (void)::sigaction(signal, &end, nullptr);
  if (!is_fault(*info)) (void)::raise(signal);
}

}  // namespace pif::component
