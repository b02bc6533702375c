// up, down, init: the file system as a set of processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cluster/disks.h"
#include "command/confirm.h"
#include "command/dispatch.h"
#include "command/options.h"
#include "command/program.h"
#include "daemons/daemons.h"
#include "daemons/roots.h"
#include "daemons/startup.h"
#include "hosts/hosts_commands.h"
#include "hosts/one_host.h"
#include "pif/base/decimal.h"
#include "pif/base/print.h"
#include "pif/cluster/cluster.h"
#include "text/text.h"

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kDefaultCount = 4;

struct ClusterCommandsOptions {
  std::string folder;
  std::uint32_t count = 0;  // 0: not said
  std::uint32_t bevy = 0;
  bool insecure_loopback = false;
  bool curve = false;
  bool force = false;       // up, init: whatever is in the folder
  bool yes = false;         // down
  bool take_roots = false;  // up
  std::vector<std::string> disks;
  HostsOptions hosts;
};

cluster::TcpMode tcp_mode(const ClusterCommandsOptions& options) {
  if (options.insecure_loopback) return cluster::TcpMode::kInsecureLoopback;
  return options.curve ? cluster::TcpMode::kCurve : cluster::TcpMode::kNone;
}

// The folder of the file system says something else than the command line.
Status check_same(const cluster::Cluster& cluster, const ClusterCommandsOptions& options) {
  if (options.count != 0 && options.count != cluster.lfss.size())
    return fail(Code::kInvalid, fmt::format("{} has {} LFSs, not {}; leave out -n, or take another folder",
                                            cluster.folder, cluster.lfss.size(), options.count));
  PIF_TRY(check_same_disks(cluster, options.disks));
  if (options.bevy != 0 && options.bevy != cluster.bevy)
    return fail(Code::kInvalid, fmt::format("{} was made with --bevy {}, not {}; leave it out, or take another folder",
                                            cluster.folder, cluster.bevy, options.bevy));
  if ((options.insecure_loopback || options.curve) && tcp_mode(options) != cluster.tcp)
    return fail(Code::kInvalid, fmt::format("{} was made for another kind of tcp; leave out --curve and "
                                            "--insecure-loopback, or take another folder",
                                            cluster.folder));
  return {};
}

// A folder that has other things in it was perhaps named by mistake. What another `up` is making at the moment is no
// other thing.
Status check_alone(const std::string& folder) {
  const auto is_ours = [](const std::string& name) {
    for (const char* start : {"keys", "pif.toml", "lfs"}) {
      if (name.starts_with(start)) return true;
    }
    return name == "run" || name == "server" || name == "lost+found";
  };
  std::vector<std::string> others;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name == "pif.toml") return {};  // it is one already
    if (!is_ours(name)) others.push_back(std::move(name));
  }
  if (others.empty()) return {};
  std::sort(others.begin(), others.end());
  return fail(
      Code::kExists,
      fmt::format("{} has {}{} in it, and is no file system yet: name a new folder, such as {}, or take this one "
                  "all the same with --force",
                  folder, others[0], others.size() == 1 ? "" : fmt::format(" and {} more", others.size() - 1),
                  join_path(folder, "pif")));
}

Result<cluster::Cluster> create(const ClusterCommandsOptions& options) {
  if (!options.force) PIF_TRY(check_alone(options.folder));
  PIF_TRY_VALUE(const DiskPlan plan, plan_disks({options.disks, options.count, options.bevy, options.force}));
  return cluster::create_cluster(options.folder, plan.count == 0 ? kDefaultCount : plan.count, options.bevy,
                                 tcp_mode(options), plan.folders);
}

Result<cluster::Cluster> load_same(const ClusterCommandsOptions& options) {
  auto loaded = load_system(options.folder);
  if (loaded) PIF_TRY(check_same(*loaded, options));
  return loaded;
}

Result<cluster::Cluster> load_or_create(const ClusterCommandsOptions& options) {
  auto loaded = load_same(options);
  if (loaded || loaded.error().code != Code::kNotFound) return loaded;
  auto created = create(options);
  if (created || created.error().code != Code::kExists) return created;
  // Somebody else may have made it just now.
  loaded = load_same(options);
  return loaded || loaded.error().code != Code::kNotFound ? loaded : created;
}

Status print_up(const Program& program, const cluster::Cluster& cluster, std::size_t started, double seconds) {
  const std::size_t all = cluster.lfss.size() + 1;
  if (program.common.json)
    return print(Json{{"folder", cluster.folder},
                      {"cluster", cluster.id},
                      {"lfss", cluster.lfss.size()},
                      {"started", started},
                      {"already_running", all - started},
                      {"seconds", seconds}});
  if (!program.common.quiet && started == 0)
    print_error(
        fmt::format("{} is already running: a server and {} LFSs\n", one_line(cluster.folder), cluster.lfss.size()));
  if (!program.common.quiet && started != 0)
    print_error(fmt::format("{} is up: a server and {} LFSs ({} started in {:.2f} s)\n", one_line(cluster.folder),
                            cluster.lfss.size(), started, seconds));
  return print(fmt::format("export PIF={}\n", shell_word(cluster.folder)));  // all that a shell may run
}

// Roots elsewhere that come to this folder: those of the one that it was before it was moved, and those of one that is
// still there, if that was asked for.
Status take_roots(const Program& program, const cluster::Cluster& cluster, bool from_others) {
  for (Daemon daemon : daemons_of(cluster, program_folder())) {
    const std::string before = cluster::last_user_of(daemon.folder);
    if (before.empty() || cluster::is_own_folder(cluster, daemon.folder)) continue;
    const bool is_shared = !daemon.other_user.empty();
    if (is_shared && !from_others) return cluster::check_unshared(cluster, daemon.folder);
    daemon.other_user.clear();
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    if (pid && !is_shared) continue;  // moved while it runs
    if (pid)
      return fail(Code::kBusy, fmt::format("{} serves {} for {} (process {}): stop that first with pif down {}",
                                           daemon.name, daemon.folder, before, *pid, shell_word(before)));
    PIF_TRY(cluster::note_user(cluster, daemon.folder));
    if (!program.common.quiet)
      print_error(fmt::format("pif: {}, which {} used, belongs to {} now\n", one_line(daemon.folder), one_line(before),
                              one_line(cluster.folder)));
  }
  return {};
}

// Starts what is there, and waits until it serves. An LFS whose disk is not there, or that does not start, keeps the
// others from nothing: files with parity are read without it.
Status start_here(const cluster::Cluster& cluster, Startup& startup) {
  PIF_TRY_VALUE(const std::vector<Daemon> daemons, daemons_with_roots(cluster));
  PIF_TRY(startup.start_missing(daemons));
  StartedLfss lfss;
  for (const Daemon& daemon : daemons) {
    if (daemon.name != "server") lfss[daemon.name] = startup.pid_of(daemon.name);
  }
  return await_up(cluster, startup, lfss);
}

// A server that asks for a person's decision must run for it to be taken.
bool is_served(const Status& is_up) {
  return is_up || is_up.error().code == Code::kStaleServer || is_up.error().code == Code::kStaleNode;
}

// All that keeps it from being up as a whole.
Status whole(const cluster::Cluster& cluster, const Startup& startup, const Status& is_up) {
  if (!is_served(is_up)) return is_up;
  std::vector<Error> errors = startup.errors();
  if (const Status roots = check_roots_there(cluster); !roots) errors.push_back(roots.error());
  if (errors.empty()) return is_up;
  if (is_up) errors.push_back({Code::kUnavailable, "the others are up", {}});
  if (!is_up) errors.push_back(is_up.error());
  return all_of(errors);
}

Outcome up(const Program& program, const ClusterCommandsOptions& options) {
  const auto begin = SteadyClock::now();
  PIF_TRY_VALUE(cluster::Cluster cluster, load_or_create(options));
  if (cluster.has_hosts()) return up_hosts(program, std::move(cluster), options.hosts);
  PIF_TRY_VALUE(const UniqueFd alone,
                lock_out_starters(cluster, kSystemUpDeadline + kSystemDownDeadline));  // what another may take
  PIF_TRY(make_ready(cluster));
  PIF_TRY(take_roots(program, cluster, options.take_roots));
  Startup startup;
  const Status is_up = start_here(cluster, startup);
  if (is_served(is_up)) startup.keep();
  if (is_served(is_up)) remember(program, cluster);
  PIF_TRY(whole(cluster, startup, is_up));
  const std::chrono::duration<double> elapsed = SteadyClock::now() - begin;
  PIF_TRY(print_up(program, cluster, startup.started(), elapsed.count()));
  return ExitCode::kDone;
}

// Nobody has typed which file system: it is said, and asked where somebody can answer.
Status confirm_down(const Program& program, const ClusterCommandsOptions& options, const cluster::FoundCluster& found) {
  if (options.yes || found.by == cluster::FoundBy::kNamed) return {};
  const char* why = found.by == cluster::FoundBy::kDefault       ? "your default"
                    : found.by == cluster::FoundBy::kEnvironment ? "from $PIF"
                                                                 : "found from the current folder";
  const std::string which = fmt::format("the file system {} ({})", one_line(found.folder), why);
  if (can_ask()) return confirm(fmt::format("pif: stop {}?", which), "nothing was stopped");
  if (!program.common.quiet) print_error(fmt::format("pif: stopping {}\n", which));
  return {};
}

Outcome down(const Program& program, const ClusterCommandsOptions& options) {
  std::string folder = options.folder;
  if (folder.empty()) {
    PIF_TRY_VALUE(const cluster::FoundCluster found, cluster::look_up_cluster(program.common.where));
    PIF_TRY(confirm_down(program, options, found));
    folder = found.folder;
  }
  PIF_TRY_VALUE(const cluster::Cluster cluster, load_system(folder));
  if (cluster.has_hosts()) return down_hosts(program, cluster, options.hosts);
  PIF_TRY_VALUE(const Stopped stopped, take_down(cluster));
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", cluster.folder}, {"stopped", stopped.asked}, {"killed", stopped.killed}}));
    return ExitCode::kDone;
  }
  for (const auto& name : stopped.killed)
    print_error(fmt::format("pif: {} did not stop within {} s and was killed\n", name, kSystemDownDeadline.count()));
  if (!program.common.quiet)
    PIF_TRY(print(stopped.asked.empty()
                      ? cluster.folder + " was not running\n"
                      : fmt::format("{} is down: {} stopped\n", cluster.folder, stopped.asked.size())));
  return ExitCode::kDone;
}

Outcome init(const Program& program, const ClusterCommandsOptions& options) {
  if (!options.hosts.hosts.empty()) {
    if (!options.force) PIF_TRY(check_alone(options.folder));
    return init_hosts(program, options.folder, options.bevy, options.hosts);
  }
  PIF_TRY_VALUE(const cluster::Cluster cluster, create(options));
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", cluster.folder}, {"cluster", cluster.id}, {"lfss", cluster.lfss.size()}}));
  } else if (!program.common.quiet) {
    PIF_TRY(
        print(fmt::format("{0} has keys and pif.toml for {1} LFSs; pif up {0} makes their folders and starts them\n",
                          cluster.folder, cluster.lfss.size())));
  }
  return ExitCode::kDone;
}

void add_cluster_options(CLI::App* command, ClusterCommandsOptions& options) {
  command->add_option("DIR", options.folder, "Folder of the file system")->required();
  command
      ->add_option("--disk", options.disks,
                   "Roots of a new file system are on these disks, in the folder pif-ID of each; again for each disk")
      ->type_name("DIR")
      ->allow_extra_args(false);  // or it would take DIR too
  command
      ->add_option("-n", options.count,
                   "Number of LFSs of a new file system (default: 4; with --disk one on each, or a multiple)")
      ->check(CLI::Range(1u, kWidthMax))
      ->transform(whole_number)
      ->type_name("N");
  add_bevy_option(command, options.bevy, "Bevy size of new files that do not name one (default: no parity)");
  auto* plain = command->add_flag("--insecure-loopback", options.insecure_loopback,
                                  "Listen on 127.0.0.1 too, neither encrypted nor authenticated (for measurements)");
  command->add_flag("--curve", options.curve, "Listen on tcp too, encrypted and authenticated by the keys in DIR/keys")
      ->excludes(plain);
}

}  // namespace

void add_cluster_commands(CLI::App& app, Program& program) {
  auto up_options = std::make_shared<ClusterCommandsOptions>();
  CLI::App* up_command = add_command(app, program, "up", "Start a file system, made first if it is new",
                                     "  pif up -n 4 /data/pif\n  pif up /data/pif                  after a reboot\n"
                                     "  pif up --disk /disk1 --disk /disk2 /data/pif\n"
                                     "  eval \"$(pif up /data/pif)\"        and make it this shell's file system");
  add_cluster_options(up_command, *up_options);
  up_command->add_flag("--force", up_options->force,
                       "Make a new file system in a folder that has other things in it, or on disks that are one");
  up_command->add_flag("--take-roots", up_options->take_roots,
                       "Use roots outside of DIR that another file system used: DIR is a copy that takes its place");
  add_rsh_option(up_command, up_options->hosts);
  on_run(up_command, program, up_options, up);

  auto down_options = std::make_shared<ClusterCommandsOptions>();
  CLI::App* down_command =
      add_command(app, program, "down", "Stop a file system's daemons",
                  "  pif down /data/pif\n  pif down               which one, it says, and asks on a terminal");
  down_command->add_option("DIR", down_options->folder, "Folder of the file system (default: found like --pif)");
  down_command->add_flag("-y,--yes", down_options->yes, "Do not ask");
  add_rsh_option(down_command, down_options->hosts);
  on_run(down_command, program, down_options, down);

  auto init_options = std::make_shared<ClusterCommandsOptions>();
  CLI::App* init_command =
      add_command(app, program, "init", "Make keys and configuration of a file system; start nothing",
                  "  pif init -n 8 --curve /data/pif\n  pif init --hosts h1,h2,h3 --lfs-per-host 2 /data/pif");
  add_cluster_options(init_command, *init_options);
  init_command->add_flag("--force", init_options->force,
                         "In a folder that has other things in it, or on disks that are one");
  add_hosts_options(init_command, init_options->hosts);
  init_command->get_option("--disk")->excludes("--hosts");
  on_run(init_command, program, init_options, init);
}

}  // namespace pif::cli
