// doctor: what is wrong with an installation, and what to do.
#include "doctor/doctor.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "hosts/hosts_commands.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct DoctorOptions {
  bool here = false;  // of several hosts this one alone
  HostsOptions hosts;
};

std::string state_name(Advice::State state) {
  switch (state) {
    case Advice::State::kOk: return "ok";
    case Advice::State::kWarning: return "warning";
    case Advice::State::kWrong: return "wrong";
  }
  return "wrong";
}

std::string line_of(const Advice& advice) {
  const std::string todo = advice.todo.empty() ? "" : "; " + advice.todo;
  return fmt::format("{:<7}  {:<10}  {}{}\n", state_name(advice.state), advice.check, one_line(advice.text),
                     one_line(todo));
}

Json document_of(const Doctor& doctor) {
  Json checks = Json::array();
  for (const Advice& advice : doctor.findings())
    checks.push_back(
        {{"check", advice.check}, {"state", state_name(advice.state)}, {"text", advice.text}, {"do", advice.todo}});
  return {{"wrong", doctor.count(Advice::State::kWrong)},
          {"warnings", doctor.count(Advice::State::kWarning)},
          {"checks", checks}};
}

// The file system meant, or a finding that says why there is none.
Result<cluster::Cluster> find(Doctor& doctor, const Program& program) {
  auto folder = cluster::find_cluster(program.common.where);
  if (!folder) {
    doctor.wrong("folder", folder.error().text, "name it with --pif DIR, or make one: pif up DIR");
    return fail(std::move(folder.error()));
  }
  auto cluster = cluster::load_cluster(*folder);
  if (cluster) {
    doctor.ok("folder",
              fmt::format("{}: file system {} of {} LFSs", cluster->folder, cluster->id, cluster->lfss.size()));
  } else if (cluster.error().code == Code::kVersion) {
    doctor.wrong("folder", cluster.error().text, "install the release that wrote it, or a newer one");
  } else {
    doctor.wrong("folder", cluster.error().text, "repair pif.toml by hand, or restore it from a copy");
  }
  return cluster;
}

Status show(const Program& program, const Doctor& doctor) {
  if (program.common.json) return print(document_of(doctor));
  std::string text;
  for (const Advice& advice : doctor.findings()) {
    if (!program.common.quiet || advice.state != Advice::State::kOk) text += line_of(advice);
  }
  return print(text);
}

Outcome examine_all(const Program& program, const DoctorOptions& options) {
  Doctor doctor;
  const std::string programs = program_folder();
  check_programs(doctor, programs);
  check_limits(doctor);
  check_kernel(doctor);
  check_mounts(doctor);
  const auto cluster = find(doctor, program);
  check_clock(doctor, cluster ? cluster->folder : "");
  if (cluster) {
    check_keys(doctor, *cluster);
    check_roots(doctor, *cluster);
    check_disks(doctor, *cluster);
    check_daemons(doctor, *cluster, programs);
    check_service(doctor, *cluster, program);
    if (cluster->has_hosts() && !options.here) check_hosts(doctor, *cluster, RemoteShell(options.hosts.rsh));
  }
  PIF_TRY(show(program, doctor));
  return doctor.count(Advice::State::kWrong) == 0 ? ExitCode::kDone : ExitCode::kNegative;
}

}  // namespace

std::size_t Doctor::count(Advice::State state) const {
  return static_cast<std::size_t>(
      std::count_if(findings_.begin(), findings_.end(), [&](const Advice& advice) { return advice.state == state; }));
}

void add_doctor_command(CLI::App& app, Program& program) {
  CLI::App* command = add_command(app, program, "doctor",
                                  "Say what is wrong with an installation, and what to do; exit 1 if anything is",
                                  "  pif doctor\n  pif doctor -q                 only what is not well\n"
                                  "  pif doctor --json | jq '.checks[] | select(.state != \"ok\")'");
  auto options = std::make_shared<DoctorOptions>();
  command->add_flag("--here", options->here, "Of a file system of several hosts, look at this one alone");
  add_rsh_option(command, options->hosts);
  on_run(command, program, options, examine_all);
}

}  // namespace pif::cli
