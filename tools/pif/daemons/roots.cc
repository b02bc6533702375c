#include "daemons/roots.h"

#include <unistd.h>

#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "daemons/startup.h"

namespace pif::cli {
namespace {

constexpr auto kInitDeadline = std::chrono::seconds(60);

// Runs a daemon's program once, to make what it needs.
Status run_inits(const cluster::Cluster& cluster, const std::vector<Daemon>& inits) {
  Startup startup;
  for (const Daemon& init : inits) {
    PIF_TRY_VALUE(const auto pid, holder(init));
    if (pid)
      return fail(Code::kBusy,
                  fmt::format("{} runs (process {}): stop it first with pif down {}", init.name, *pid, cluster.folder));
  }
  PIF_TRY(startup.start_missing(inits));
  return startup.await_end(std::chrono::steady_clock::now() + kInitDeadline);
}

Daemon init_of(const cluster::Cluster& cluster, Daemon daemon, bool replace) {
  const std::string program = daemon.arguments[0];
  if (daemon.name == "server") {
    daemon.arguments = {program, "init", cluster.folder};
  } else {
    daemon.arguments = {program, "init", "--cluster", cluster.folder, daemon.name};
    if (replace) daemon.arguments.emplace_back("--replace");
  }
  return daemon;
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// The file without which it does not start.
std::string needed_by(const Daemon& daemon) {
  return daemon.folder + (daemon.name == "server" ? "/directory/data.mdb" : "/lfs.toml");
}

}  // namespace

Status make_ready(cluster::Cluster& cluster) {
  PIF_TRY_VALUE(cluster, cluster::load_cluster(cluster.folder));  // as whoever held the lock before has left it
  if (cluster.stage == cluster::Stage::kReady) return {};
  if (cluster.stage == cluster::Stage::kBefore) {
    PIF_TRY(check_roots_there(cluster));
    PIF_TRY(cluster::name_roots(cluster));
    PIF_TRY(cluster::save_cluster(cluster));
  }
  std::vector<Daemon> inits;
  for (Daemon& daemon : daemons_of(cluster, program_folder()))
    inits.push_back(init_of(cluster, std::move(daemon), false));
  PIF_TRY(run_inits(cluster, inits));
  cluster.stage = cluster::Stage::kReady;
  return cluster::save_cluster(cluster);
}

Status make_own_roots(const cluster::Cluster& cluster) {
  std::vector<Daemon> inits;
  for (Daemon& daemon : daemons_of(cluster, program_folder())) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));  // one that runs has what it needs
    if (!pid) inits.push_back(init_of(cluster, std::move(daemon), false));
  }
  return run_inits(cluster, inits);
}

bool has_root(const Daemon& daemon) { return is_there(needed_by(daemon)); }

Status check_roots_there(const cluster::Cluster& cluster) {
  std::vector<std::string> missing, ways_out;
  for (const Daemon& daemon : daemons_of(cluster, program_folder())) {
    if (has_root(daemon)) continue;
    missing.push_back(needed_by(daemon));
    ways_out.push_back(daemon.name == "server" ? "a backup of " + daemon.folder : "pif node replace " + daemon.name);
  }
  if (missing.empty()) return {};
  return fail(Code::kNotFound,
              fmt::format("{} {} missing: is the disk mounted? If it is lost: {}", fmt::join(missing, ", "),
                          missing.size() == 1 ? "is" : "are", fmt::join(ways_out, ", ")));
}

Result<std::vector<Daemon>> daemons_with_roots(const cluster::Cluster& cluster) {
  std::vector<Daemon> daemons = daemons_of(cluster, program_folder());
  const std::size_t all = daemons.size();
  std::erase_if(daemons, [](const Daemon& daemon) { return !has_root(daemon); });
  const bool has_server = !daemons.empty() && daemons.front().name == "server";
  const bool is_useless = cluster.serves_here() ? !has_server || daemons.size() == 1 : daemons.empty();
  if (daemons.size() < all && is_useless) PIF_TRY(check_roots_there(cluster));
  return daemons;
}

Status make_missing_root(const cluster::Cluster& cluster, const std::string& lfs) {
  if (lfs.empty()) return {};
  for (const auto& entry : cluster.lfss) {
    if (entry.name == lfs && is_there(entry.root + "/lfs.toml")) return {};
  }
  return make_root_anew(cluster, lfs);
}

Status make_root_anew(const cluster::Cluster& cluster, const std::string& name) {
  for (Daemon& daemon : daemons_of(cluster, program_folder())) {
    if (daemon.name == name) return run_inits(cluster, {init_of(cluster, std::move(daemon), true)});
  }
  return fail(Code::kNotFound, fmt::format("{}/pif.toml has no LFS named {}", cluster.folder, name));
}

}  // namespace pif::cli
