#include "daemons/roots.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
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
  PIF_TRY(all_of(startup.errors()));
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

std::string parent_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

// A new root elsewhere gets no parents: where a disk is not mounted they are missing.
Status check_parents_there(const cluster::Cluster& cluster) {
  for (const auto& lfs : cluster.lfss) {
    const std::string parent = parent_of(lfs.root);
    if (cluster.is_here(lfs) && !is_there(parent))
      return fail(Code::kNotFound,
                  fmt::format("{} is missing, where the root of {} is to be: is the disk mounted?", parent, lfs.name));
  }
  return {};
}

// A new disk in the place of a lost one has no folder of the file system yet.
bool lacks_disk_folder(const cluster::Cluster& cluster, const std::string& root) {
  const std::string folder = parent_of(root);
  return folder == cluster::disk_folder(parent_of(folder), cluster.id) && !is_there(folder);
}

Status check_disk_mounted(const std::string& root) {
  const std::string folder = parent_of(root), disk = parent_of(folder);
  struct stat there {
  }, above{};
  if (::stat(disk.c_str(), &there) != 0 || ::stat((disk + "/..").c_str(), &above) != 0)
    return fail_errno(errno, fmt::format("cannot find {}: is the disk mounted?", disk));
  if (there.st_dev != above.st_dev) return {};
  return fail(Code::kNotFound,
              fmt::format("no disk is mounted at {}: mount it, or make {} if it is no disk's folder", disk, folder));
}

}  // namespace

Status make_disk_folder(const cluster::Cluster& cluster, const std::string& root) {
  if (!lacks_disk_folder(cluster, root)) return {};
  PIF_TRY(check_disk_mounted(root));
  return cluster::make_disk_folder(parent_of(parent_of(root)), cluster.id);
}

Status make_ready(cluster::Cluster& cluster) {
  PIF_TRY_VALUE(cluster, cluster::load_cluster(cluster.folder));  // as whoever held the lock before has left it
  if (cluster.stage == cluster::Stage::kReady) return {};
  if (cluster.stage == cluster::Stage::kBefore) {
    PIF_TRY(check_roots_there(cluster));
    PIF_TRY(cluster::name_roots(cluster));
    PIF_TRY(cluster::save_cluster(cluster));
  }
  if (cluster.stage == cluster::Stage::kNew) PIF_TRY(check_parents_there(cluster));
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
    if (daemon.name != name) continue;
    PIF_TRY(make_disk_folder(cluster, daemon.folder));
    return run_inits(cluster, {init_of(cluster, std::move(daemon), true)});
  }
  return fail(Code::kNotFound, fmt::format("{}/pif.toml has no LFS named {}", cluster.folder, name));
}

}  // namespace pif::cli
