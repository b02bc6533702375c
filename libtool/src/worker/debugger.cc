#include "worker/debugger.h"

#include <unistd.h>

#include <array>
#include <csignal>

#include <fmt/format.h>

#include "pif/base/print.h"

namespace pif::tool {

void stop_for_debugger(std::string_view who) {
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  print_error(
      fmt::format("{0} has stopped, pid {1} at {2}: gdb -p {1}, or kill -CONT {1}\n", who, ::getpid(), host.data()));
  ::raise(SIGSTOP);
}

}  // namespace pif::tool
