#include "pif/tool/threads.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "worker/group_limits.h"

namespace pif::tool {

void add_threads_option(CLI::App& app, unsigned& threads) {
  app.add_option("--threads", threads,
                 "on each machine, shared by the workers there, which have one each at least (default: the cores that "
                 "they may use)")
      ->check(CLI::Range(1U, kThreadsMax).description(""))
      ->transform(decimal)
      ->type_name("N");
}

unsigned usable_cores() {
  std::array<cpu_set_t, 16> cores{};  // 16,384 of them; the kernel refuses a set that is too small
  const bool known = ::sched_getaffinity(0, sizeof cores, cores.data()) == 0;
  const int allowed = known ? CPU_COUNT_S(sizeof cores, cores.data()) : 1;
  return std::min(static_cast<unsigned>(std::max(allowed, 1)), group_limits().cores.value_or(UINT_MAX));
}

}  // namespace pif::tool
