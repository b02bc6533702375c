// The main function of a tool. The same program is the controller, which the user starts, and the worker, which the
// LFSs' worker hosts start: argv[1] tells.
//
//   int main(int argc, char** argv) {
//     pif::tool::Tool tool;
//     tool.name = "pif-nothing";
//     tool.control = [](pif::tool::Controller& controller) { return pif::tool::run_and_commit(controller); };
//     tool.work = [](pif::tool::Worker&) { return pif::Status(); };
//     return pif::tool::main(argc, argv, tool);
//   }
//
// Every tool has --pif, --route, --json, -q, --verbose, --explain, --report FILE, --help and --version, and what gives
// something to workers: --read DIR, --write DIR and, unless it has one of its own, --file FILE. Exit codes are
// ExitCode's. Ctrl-C ends the job everywhere and leaves no output.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/controller.h"
#include "pif/tool/exit_code.h"
#include "pif/tool/worker.h"

namespace CLI {
class App;
}

namespace pif::tool {

// The output of --explain: names and values, in order.
using Plan = std::vector<std::pair<std::string, std::string>>;

// The basis of predictions in a plan: whether there is a calibration (or what to do), and what is assumed of a file of
// so many bytes.
void add_assumptions(Plan& plan, const Result<Calibration>& calibration, std::uint64_t bytes);

struct Tool {
  std::string name;                        // "pif-copy"
  std::string summary;                     // one sentence
  std::string examples;                    // shown by --help
  std::function<void(CLI::App&)> options;  // adds the tool's own; may be empty
  std::function<Result<ExitCode>(Controller&)> control;
  WorkerFunction work;
  std::function<Result<Plan>(Controller&)> explain;  // may be empty
  bool prints = false;                               // while workers run: on a terminal no progress is shown then
};

// The first argument of a worker process.
inline constexpr const char* kWorkerRole = "--pif-worker";

// All of a tool's main(): parses the command line, connects, and runs tool.control, or tool.work in a worker; prints
// errors on stderr. Returns the exit code. Once per process, before it has other threads.
int main(int argc, char** argv, const Tool& tool);

// The end of most tools' control: runs the job and commits the outputs. kDone, or their errors.
[[nodiscard]] Result<ExitCode> run_and_commit(Controller& controller, const Job& job = {});

// Writes all of it to standard output, at once. kIo and others if it does not take it.
[[nodiscard]] Status print(const std::string& text);

// "pif:/a/b" and "/a/b" are the same: base/typed_path.h, parse_path().
[[nodiscard]] Result<std::string> pif_path(const std::string& path);

}  // namespace pif::tool
