// run: a program of the user's own, with the environment that says which file system is meant.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "command/program.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {
namespace {

struct RunOptions {
  CLI::App* command = nullptr;  // its remaining arguments are the program and what is for it
};

void set_environment(const Common& common, const std::string& folder) {
  ::setenv("PIF", folder.c_str(), 1);
  if (common.route != "auto") ::setenv("PIF_ROUTE", common.route.c_str(), 1);
  if (common.data != "auto") ::setenv("PIF_DATA", common.data.c_str(), 1);
}

Outcome run(const Program& program, const RunOptions& options) {
  const std::vector<std::string> words = options.command->remaining();
  if (words.empty()) return fail(Code::kInvalid, "which program? pif run PROGRAM [ARGUMENTS]");
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  set_environment(program.common, folder);
  const int error = replace_process(words);
  if (error == ENOENT && words[0].find('/') == std::string::npos)
    return fail(Code::kNotFound,
                fmt::format("no program {0} here or in PATH; if it is in this folder: ./{0}", words[0]));
  return fail(Code::kIo, fmt::format("cannot run {}: {}", words[0], std::strerror(error)));
}

}  // namespace

void add_run_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<RunOptions>();
  options->command =
      add_command(app, program, "run",
                  "Run a program of your own, such as a tool, on this file system: pif run PROGRAM [ARGUMENTS...]",
                  "  pif run ./mytool /in /out\n"
                  "  pif run --pif /data/pif ./mytool --json /in /out\n"
                  "What follows the program's name is for the program, which finds the file system in $PIF.");
  options->command->prefix_command();
  on_run(options->command, program, options, run);
}

}  // namespace pif::cli
