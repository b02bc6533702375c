// pif host: what is done on one host of a file system, by hand, by a service manager, or by `pif up` elsewhere.
#include <unistd.h>

#include <memory>
#include <span>

#include <fmt/format.h>

#include "command/io.h"
#include "hosts/one_host.h"
#include "hosts/sent_files.h"
#include "pif/base/decimal.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct HostOptions {
  std::string folder;
  KnownSystem known;
  std::string lfs;  // receive
};

// "lfs0 runs (process 12)": one line for each daemon.
std::string text_of(const Json& answer) {
  std::string out;
  for (const Json& daemon : answer.value("daemons", Json::array())) {
    const int pid = daemon.value("pid", 0);
    const char* what = daemon.value("started", false) ? "started" : pid != 0 ? "running" : "down";
    out += fmt::format("{}  {}{}\n", daemon.value("name", ""), what, pid == 0 ? "" : fmt::format(" (process {})", pid));
  }
  return out;
}

Outcome host_up(const Program& program, const HostOptions& options) {
  PIF_TRY_VALUE(const Json answer, up_here(options.folder, options.known));
  if (program.common.json || !program.common.quiet)
    PIF_TRY(program.common.json ? print(answer) : print(text_of(answer)));
  const Json failed = answer.value("failed", Json::array());
  for (const Json& one : failed) {
    if (!program.common.json) print_error(fmt::format("pif: {}\n", one_line(one.get<std::string>())));
  }
  return answer.contains("behind") || !failed.empty() ? ExitCode::kNegative : ExitCode::kDone;
}

Outcome host_down(const Program& program, const HostOptions& options) {
  PIF_TRY_VALUE(const Json answer, down_here(options.folder));
  if (program.common.json) {
    PIF_TRY(print(answer));
  } else if (!program.common.quiet) {
    PIF_TRY(print(fmt::format("{} stopped\n", answer["stopped"].size())));
  }
  return ExitCode::kDone;
}

Outcome host_status(const Program& program, const HostOptions& options) {
  PIF_TRY_VALUE(const Json answer, status_here(options.folder));
  PIF_TRY(program.common.json ? print(answer) : print(text_of(answer)));
  return ExitCode::kDone;
}

Outcome host_run(const Program&, const HostOptions& options) {
  PIF_TRY(run_here(options.folder));
  return ExitCode::kDone;
}

Outcome host_receive(const Program& program, const HostOptions& options) {
  std::string bytes(kSentBytesMax + 1, '\0');
  PIF_TRY_VALUE(const std::size_t got,
                read_full(0, std::as_writable_bytes(std::span(bytes)), "what was sent on standard input"));
  bytes.resize(got);
  PIF_TRY_VALUE(const cluster::HostFiles files, unpack_files(bytes));
  PIF_TRY_VALUE(const Json answer, receive_here(options.folder, files, options.lfs));
  if (program.common.json) PIF_TRY(print(answer));
  return ExitCode::kDone;
}

}  // namespace

CLI::App* add_host_command(CLI::App& app, Program& program) {
  CLI::App* host =
      add_command(app, program, "host", "Start, stop and look at the daemons of this host alone",
                  "  pif host up /data/pif\n  pif host run /data/pif         in the foreground, for systemd "
                  "or Slurm\n  pif host status /data/pif");
  host->require_subcommand(1);
  auto options = std::make_shared<HostOptions>();
  const auto add = [&](const char* name, const char* description, auto run) {
    CLI::App* command = host->add_subcommand(name, description);
    command->fallthrough();
    command->add_option("DIR", options->folder, "Folder of the file system")->required();
    on_run(command, program, options, run);
    return command;
  };
  CLI::App* up = add("up", "Start what does not run, and wait until it serves", host_up);
  up->add_option("--id", options->known.id, "Only if it is this file system")->type_name("ID");
  up->add_option("--edition", options->known.edition, "Only if pif.toml is of this edition")
      ->type_name("N")
      ->transform(whole_number);
  up->add_option("--key-number", options->known.key_number, "Only if the cluster's key was changed so often")
      ->type_name("N")
      ->transform(whole_number);
  add("down", "Stop all of them", host_down);
  add("status", "Which of them run", host_status);
  add("run", "Run them until SIGTERM, and start again what ends; READY=1 goes to $NOTIFY_SOCKET when all are up",
      host_run);
  add("receive", "Take over keys and pif.toml from standard input, as pif init and pif up send them", host_receive)
      ->add_option("--make", options->lfs, "Make the root of this LFS, if it is not there")
      ->type_name("LFS");
  return host;
}

}  // namespace pif::cli
