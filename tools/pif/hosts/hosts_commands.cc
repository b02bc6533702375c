#include "hosts/hosts_commands.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "daemons/daemons.h"
#include "daemons/startup.h"
#include "hosts/hosts_plan.h"
#include "hosts/key_change.h"
#include "hosts/several_hosts.h"
#include "pif/base/decimal.h"
#include "pif/base/key_ring.h"
#include "pif/base/limits.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

using HostsClock = std::chrono::steady_clock;

std::string again(const cluster::Cluster& cluster) {
  return fmt::format("mend what is said above, and run `pif up {}`", shell_word(cluster.folder));
}

// What the hosts have started, and the LFSs that must be up by now.
struct StartedHosts {
  StartedLfss lfss;
  std::size_t started = 0, running = 0;  // daemons
};

StartedHosts started_in(const std::vector<HostAnswer>& answers) {
  StartedHosts out;
  for (const HostAnswer& answer : answers) {
    if (!answer.answer || !answer.answer->contains("daemons")) continue;
    for (const Json& daemon : (*answer.answer)["daemons"]) {
      const std::string name = daemon.value("name", "");
      const bool is_new = daemon.value("started", false);
      ++(is_new ? out.started : out.running);
      if (name != "server") out.lfss[name] = is_new ? daemon.value("pid", 0) : 0;
    }
  }
  return out;
}

// Nothing is waited for if the server's host is not up: that has been said.
Status await_hosts(const cluster::Cluster& cluster, const std::vector<HostAnswer>& answers, const StartedHosts& hosts) {
  const auto has_server = [&](const HostAnswer& answer) { return answer.host == cluster.servers.front().host; };
  const auto server = std::find_if(answers.begin(), answers.end(), has_server);
  if (server == answers.end() || !server->answer) return {};
  Startup elsewhere;
  return await_up(cluster, elsewhere, hosts.lfss);
}

// A host that is up without one of its LFSs has failed, for whoever reads the answers.
std::vector<HostAnswer> with_failures(const cluster::Cluster& cluster, const std::vector<HostAnswer>& answers) {
  std::vector<HostAnswer> out;
  for (const HostAnswer& answer : answers) {
    const Json failed = answer.answer ? answer.answer->value("failed", Json::array()) : Json::array();
    if (failed.empty()) {
      out.push_back(answer);
      continue;
    }
    const bool is_here = answer.host == cluster.own_host;
    std::vector<Error> errors;
    for (const Json& one : failed) errors.push_back({Code::kUnavailable, one.get<std::string>(), {}});
    errors.front().text = fmt::format("{} ({}): {}", answer.host,
                                      is_here ? "here" : cluster.find_host(answer.host)->address, errors.front().text);
    out.push_back({answer.host, fail(all_of(errors).error())});
  }
  return out;
}

Status print_up_hosts(const Program& program, const cluster::Cluster& cluster, const StartedHosts& hosts,
                      double seconds) {
  if (program.common.json)
    return print(Json{{"folder", cluster.folder},
                      {"cluster", cluster.id},
                      {"hosts", cluster.hosts.size()},
                      {"lfss", cluster.lfss.size()},
                      {"started", hosts.started},
                      {"already_running", hosts.running},
                      {"seconds", seconds}});
  if (!program.common.quiet)
    print_error(fmt::format("{} is up on {} hosts: a server and {} LFSs ({} started in {:.2f} s)\n",
                            one_line(cluster.folder), cluster.hosts.size(), cluster.lfss.size(), hosts.started,
                            seconds));
  return print(fmt::format("export PIF={}\n", shell_word(cluster.folder)));  // all that a shell may run
}

// Gives all hosts their files, where that has not been done.
Status ready_hosts(const Program& program, cluster::Cluster& cluster, const RemoteShell& shell) {
  PIF_TRY_VALUE(cluster, cluster::load_cluster(cluster.folder));  // as whoever held the lock before has left it
  if (cluster.stage == cluster::Stage::kReady) return {};
  PIF_TRY_VALUE(const auto answers, SeveralHosts::make_ready(cluster, shell));
  return report_hosts(program, answers, "a new file system could not be made", again(cluster));
}

// Where `pif key rotate` has stopped, because not all hosts were there.
Status go_on_changing_key(const Program& program, const cluster::Cluster& cluster, const RemoteShell& shell) {
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  PIF_TRY_VALUE(const bool changing, is_key_changing(cluster));
  return changing ? change_key(program, cluster, shell, kOldKeySeconds) : Status();
}

Result<std::string> absolute_folder(const std::string& folder) {
  std::error_code failed;
  std::string path = std::filesystem::weakly_canonical(std::filesystem::absolute(folder), failed).string();
  if (failed) return fail_errno(failed.value(), "cannot find the folder " + folder);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void remember(const Program& program, const cluster::Cluster& cluster) {
  for (const Status& noted : {cluster::offer_default(cluster.folder), cluster::remember_cluster(cluster.folder)}) {
    if (!noted && program.common.verbose) print_error(fmt::format("pif: {}\n", one_line(noted.error().to_string())));
  }
}

Outcome init_hosts(const Program& program, const std::string& folder, std::uint32_t bevy, const HostsOptions& options) {
  PIF_TRY_VALUE(const std::string path, absolute_folder(folder));
  PIF_TRY_VALUE(cluster::Cluster plan, plan_hosts(path, options));
  plan.bevy = bevy;
  PIF_TRY_VALUE(cluster::Cluster cluster, cluster::create_cluster(folder, std::move(plan)));
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  PIF_TRY(ready_hosts(program, cluster, RemoteShell(options.rsh)));
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", cluster.folder},
                       {"cluster", cluster.id},
                       {"hosts", cluster.hosts.size()},
                       {"lfss", cluster.lfss.size()}}));
  } else if (!program.common.quiet) {
    PIF_TRY(print(fmt::format("{0} has keys, pif.toml and folders for {1} LFSs on {2} hosts; pif up {0} starts them\n",
                              cluster.folder, cluster.lfss.size(), cluster.hosts.size())));
  }
  return ExitCode::kDone;
}

Outcome up_hosts(const Program& program, cluster::Cluster cluster, const HostsOptions& options) {
  const auto begin = HostsClock::now();
  const RemoteShell shell(options.rsh);
  {
    PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline + kSystemDownDeadline));
    PIF_TRY(ready_hosts(program, cluster, shell));
  }
  const auto answers = SeveralHosts(cluster, shell).up();
  const StartedHosts hosts = started_in(answers);
  const Status all = report_hosts(program, with_failures(cluster, answers), "not up", again(cluster));
  remember(program, cluster);
  if (const Status up = await_hosts(cluster, answers, hosts); all && !up) return fail(up.error());
  PIF_TRY(all);
  PIF_TRY(go_on_changing_key(program, cluster, shell));
  const std::chrono::duration<double> elapsed = HostsClock::now() - begin;
  PIF_TRY(print_up_hosts(program, cluster, hosts, elapsed.count()));
  return ExitCode::kDone;
}

Outcome down_hosts(const Program& program, const cluster::Cluster& cluster, const HostsOptions& options) {
  const auto answers = SeveralHosts(cluster, RemoteShell(options.rsh)).down();
  Json hosts = Json::array();
  std::size_t stopped = 0;
  for (const HostAnswer& answer : answers) {
    if (!answer.answer) continue;
    hosts.push_back(*answer.answer);
    stopped += answer.answer->value("stopped", Json::array()).size();
    for (const Json& name : answer.answer->value("killed", Json::array()))
      print_error(fmt::format("pif: {} on {} did not stop within {} s and was killed\n", name.get<std::string>(),
                              answer.host, kSystemDownDeadline.count()));
  }
  PIF_TRY(report_hosts(program, answers, "perhaps not down",
                       fmt::format("mend what is said above, and run `pif down {}`", shell_word(cluster.folder))));
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", cluster.folder}, {"hosts", hosts}}));
  } else if (!program.common.quiet) {
    PIF_TRY(print(stopped == 0 ? cluster.folder + " was not running\n"
                               : fmt::format("{} is down on {} hosts: {} stopped\n", cluster.folder,
                                             cluster.hosts.size(), stopped)));
  }
  return ExitCode::kDone;
}

void add_rsh_option(CLI::App* command, HostsOptions& options) {
  command
      ->add_option("--rsh", options.rsh,
                   "What runs a command on another host (default: $PIF_RSH, else ssh -o BatchMode=yes "
                   "-o ConnectTimeout=5)")
      ->type_name("COMMAND");
}

void add_hosts_options(CLI::App* command, HostsOptions& options) {
  const auto group = "Several hosts";
  auto* hosts = command
                    ->add_option("--hosts", options.hosts,
                                 "On these hosts, the server on the first one: names that other hosts know, or "
                                 "NAME=ADDRESS; DIR is the same on all")
                    ->type_name("HOST,HOST,...")
                    ->group(group);
  const auto add = [&](CLI::Option* option, const char* type) {
    option->type_name(type)->group(group)->needs(hosts);
    return option;
  };
  add(command->add_option("--client-hosts", options.client_hosts, "Hosts that use it, and have no LFS"),
      "HOST,HOST,...");
  add(command->add_option("--lfs-per-host", options.lfss_per_host, "LFSs on each (default: 1)"), "K")
      ->check(CLI::Range(1u, kWidthMax))
      ->transform(whole_number);
  add(command->add_option("--port", options.port, "The server's port; LFSs have those after it (default: 7400)"),
      "PORT")
      ->check(CLI::Range(1u, 65000u))
      ->transform(whole_number);
  add(command->add_option("--worker-ports", options.worker_ports,
                          "Where workers of tools listen (default: 7500-7999); any: at any port"),
      "FIRST-LAST");
  add(command->add_option("--host", options.own, "Which of them this is (default: the one with its address)"), "NAME");
  add_rsh_option(command, options);
}

}  // namespace pif::cli
