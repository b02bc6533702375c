// `pif X` is a command of this program, or else the program pif-X; called as pif-X it is the command X.
#include <csignal>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dispatch.h"
#include "program.h"

int main(int argc, char** argv) {
  // A reader that has seen enough closes its end: a failed write says so, a signal would not.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (const std::string command = pif::cli::command_in_name(argv[0]); !command.empty())
    arguments.insert(arguments.begin(), command);
  if (pif::cli::is_external(arguments)) return pif::cli::run_external(arguments);
  pif::cli::Program program;
  return program.run(std::move(arguments));
}
