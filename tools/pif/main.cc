// `pif X` is a command of this program, or else the program pif-X; called as pif-X it is the command X.
#include <string>
#include <vector>

#include "command/dispatch.h"
#include "command/interrupt.h"
#include "command/program.h"
#include "pif/base/assert.h"
#include "pif/base/print.h"

int main(int argc, char** argv) {
  pif::fill_standard_streams();
  pif::set_assertion_handler(&pif::end_process);  // a call that breaks one ends the program, too
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (const std::string command = pif::cli::command_in_name(argv[0]); !command.empty())
    arguments.insert(arguments.begin(), command);
  pif::cli::Program program;
  const int exit_code = program.run(std::move(arguments));
  pif::cli::die_of_interrupt();
  return exit_code;
}
