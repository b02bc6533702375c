// SIGBUS, which the kernel sends a thread that touches a mapped file where it has no page. A process may have several
// handlers of it: each takes the faults that are its own, and passes on all else.
#pragma once

#include <csignal>

namespace pif::component {

// Whether a thread's own instruction raised it: it would happen again. Others were sent, or tell of bad memory that
// nobody has touched. A handler may call it.
bool is_fault(const siginfo_t& info);

// From a handler, which got the other three: does what would have been done without it. before: the action that was
// there when it was installed. Where that is the default one the process ends, of a fault when it comes again.
void pass_on(const struct sigaction& before, int signal, siginfo_t* info, void* context);

}  // namespace pif::component
