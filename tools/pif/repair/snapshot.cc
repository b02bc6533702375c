// snapshot-hold: one moment of everything, for as long as the disks' own snapshots take.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "command/program.h"
#include "pif/base/decimal.h"
#include "pif/base/print.h"
#include "repair/inventory.h"
#include "text/text.h"

extern char** environ;

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kSecondsDefault = 30, kSecondsMax = 300;

struct SnapshotOptions {
  std::uint32_t seconds = kSecondsDefault;
  std::vector<std::string> command;
};

// Its exit code; 128 and the signal's number if one ended it.
Result<int> run_command(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (const int error = ::posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ); error != 0)
    return fail_errno(error, "cannot run " + command[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno(errno, "cannot wait for " + command[0]);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void await_line() {
  char byte = 0;
  while (::read(0, &byte, 1) == 1 && byte != '\n') {
  }
}

Outcome snapshot_hold(const Program& program, const SnapshotOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  Inventory inventory(client::session_of(client));
  PIF_TRY(inventory.open());
  const auto begin = SteadyClock::now();
  if (Status held = inventory.hold(std::chrono::seconds(options.seconds)); !held) {
    (void)inventory.hold({});
    return fail(std::move(held.error()));
  }
  if (!program.common.quiet)
    print_error(fmt::format("nothing is committed for {} s at most{}\n", options.seconds,
                            options.command.empty() ? ": take the snapshots of all disks, then press Enter" : ""));
  Result<int> code = 0;
  if (options.command.empty()) await_line();
  if (!options.command.empty()) code = run_command(options.command);
  const auto took = SteadyClock::now() - begin;
  const Status released = inventory.hold({});
  if (took >= std::chrono::seconds(options.seconds))
    return fail(Code::kTimeout,
                fmt::format("commits went on after {} s, before the snapshots were done: they are not of one moment; "
                            "try again with a longer --seconds",
                            options.seconds));
  PIF_TRY(released);
  if (!code) return fail(code.error());
  if (*code != 0) return fail(Code::kIo, fmt::format("{} ended with exit code {}", options.command[0], *code));
  return ExitCode::kDone;
}

}  // namespace

void add_snapshot_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<SnapshotOptions>();
  CLI::App* command =
      add_command(app, program, "snapshot-hold", "Commit nothing while the snapshots of all disks are taken",
                  "  pif snapshot-hold -- lvcreate -s -n moment vg/pif\n"
                  "  pif snapshot-hold --seconds 120 -- ./snapshot-all-disks\n"
                  "  pif snapshot-hold                     until Enter is pressed");
  command->add_option("--seconds", options->seconds, "Go on after so many, whatever happens (default: 30)")
      ->check(CLI::Range(1u, kSecondsMax))
      ->transform(whole_number)
      ->type_name("N");
  command->add_option("COMMAND", options->command, "What takes the snapshots, and its arguments, behind --");
  on_run(command, program, options, snapshot_hold);
}

}  // namespace pif::cli
