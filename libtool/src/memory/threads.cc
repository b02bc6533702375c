#include "pif/tool/threads.h"

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"

namespace pif::tool {

void add_threads_option(CLI::App& app, unsigned& threads) {
  app.add_option("--threads", threads,
                 "on each machine, shared by the workers there, which have one each at least (default: the cores that "
                 "they may use)")
      ->check(CLI::Range(1U, kThreadsMax).description(""))
      ->transform(whole_number)
      ->type_name("N");
}

}  // namespace pif::tool
