// destroy: a whole file system is removed, and nothing but it.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/lfs_identity.h"
#include "command/confirm.h"
#include "command/program.h"
#include "daemons/daemons.h"
#include "names/removal.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct DestroyOptions {
  std::string folder;
  bool yes = false;
};

// ---- what is a file system's own (docs/FORMAT.md) ----

const KnownFolder kStore = {{"data.mdb", "lock.mdb"}, {{"making", {{"data.mdb", "lock.mdb"}, {}, {}}}}, {}};

KnownFolder known_in_root(const cluster::LfsEntry& lfs) {
  std::string id;
  for (int i = 0; i < 16; ++i) id += "[0-9a-f]";
  const KnownFolder components = {
      {id + ".dat", id + ".sum", id + ".idx", id + ".isum", id + ".par", id + ".psum", id + ".pap"}, {}, {}};
  return {{"lfs.toml.new", "lock", "used-by", lfs.name + ".log"},
          {{"catalogue", kStore},
           {"data", {{}, {{"[0-9a-f][0-9a-f]", components}}, {}}},
           {"log", {{"redo.0", "redo.1", "redo.log"}, {}, {}}},
           {"scratch", {}}},
          "lfs.toml"};
}

KnownFolder known_in_server() { return {{"lock", "used-by", "server.log"}, {{"directory", kStore}}, {}}; }

// Sockets of daemons, and folders of workers that were killed.
KnownFolder known_in_run() { return {{"*.sock", "*.ipc", "*.tcp"}, {{"w[0-9a-f]*-[0-9]*", {{"*"}, {}, {}}}}, {}}; }

// What is left of DIR when roots, server and sockets are gone. pif.toml goes last: without it nobody knows what else
// there is.
KnownFolder known_in_folder() {
  const KnownFolder pairs = {{"*.pub"}, {}, {}};
  const KnownFolder keys = {{"cluster.key", "*.curve"}, {{"clients", pairs}, {"hosts", pairs}}, {}};
  return {{"pif.toml.??????", "host", "lock"}, {{"keys", keys}, {"keys.??????", keys}}, "pif.toml"};
}

// ---- what is removed, and what not ----

// A folder elsewhere that others may use: of a copy, and of what it is a copy of.
std::string not_used(const cluster::Cluster& cluster, const std::string& folder) {
  const std::string last = cluster::last_user_of(folder);
  return last.empty() ? fmt::format("does not say that {} has used it", cluster.folder)
                      : fmt::format("was used by {} last, not by {}", last, cluster.folder);
}

// Why nothing in a root may be removed; empty: it is this file system's.
std::string why_not(const cluster::Cluster& cluster, const cluster::LfsEntry& lfs) {
  struct stat about {};
  if (::lstat(lfs.root.c_str(), &about) != 0) return errno == ENOENT ? "is not there" : "cannot be looked at";
  if (S_ISLNK(about.st_mode)) return "is a symbolic link";
  if (!S_ISDIR(about.st_mode)) return "is no folder";
  if (!cluster::is_own_folder(cluster, lfs.root)) return not_used(cluster, lfs.root);
  if (cluster.stage == cluster::Stage::kNew) return "";  // perhaps half made
  auto identity = identity_of(lfs.root + "/lfs.toml");
  if (identity.empty()) return "has no lfs.toml";
  if (identity["cluster"] != cluster.id)
    return fmt::format("is of the file system {}, not of {}", identity["cluster"], cluster.id);
  if (!lfs.uuid.empty() && identity["uuid"] != lfs.uuid)
    return fmt::format("is the root {}, and pif.toml says {}", identity["uuid"], lfs.uuid);
  return "";
}

struct Plan {
  std::vector<const cluster::LfsEntry*> roots;
  std::vector<std::string> elsewhere;  // of these, those that are not in DIR
  std::vector<std::string> untouched;  // roots, and why
};

Plan plan_for(const cluster::Cluster& cluster) {
  Plan plan;
  for (const auto& lfs : cluster.lfss) {
    if (!cluster.is_here(lfs)) continue;
    const std::string why = why_not(cluster, lfs);
    if (!why.empty()) {
      plan.untouched.push_back(fmt::format("{} {}", lfs.root, why));
      continue;
    }
    plan.roots.push_back(&lfs);
    if (!lfs.root.starts_with(cluster.folder + "/")) plan.elsewhere.push_back(lfs.root);
  }
  return plan;
}

// Who may: the owner, and root.
Status check_owner(const cluster::Cluster& cluster) {
  PIF_TRY_VALUE(const uid_t owner, owner_of(cluster));
  if (::geteuid() == 0 || ::geteuid() == owner) return {};
  return fail(Code::kPermission, fmt::format("{} belongs to user {}, who alone may remove it", cluster.folder, owner));
}

Result<std::size_t> count_running(const cluster::Cluster& cluster) {
  std::size_t running = 0;
  for (const Daemon& daemon : daemons_of(cluster, "")) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    running += pid ? 1 : 0;
  }
  return running;
}

void say_folders(const Plan& plan) {
  const std::string elsewhere = fmt::format("{}", fmt::join(plan.elsewhere, ", "));
  if (!elsewhere.empty())
    print_error(fmt::format("pif: roots elsewhere that are removed, too: {}\n", one_line(elsewhere)));
  for (const std::string& left : plan.untouched) print_error(fmt::format("pif: left as it is: {}\n", one_line(left)));
}

Status ask(const cluster::Cluster& cluster, const Plan& plan) {
  if (!can_ask())
    return fail(Code::kInvalid,
                fmt::format("destroy removes {} with all that is in it, and there is nobody to ask: say --yes",
                            cluster.folder));
  PIF_TRY_VALUE(const std::size_t running, count_running(cluster));
  print_error(fmt::format("pif: the file system {}: a server and {} LFSs, {}\n", one_line(cluster.folder),
                          cluster.lfss.size(),
                          running == 0 ? "down" : fmt::format("{} daemons running, which are stopped first", running)));
  say_folders(plan);
  return confirm("pif: remove it, with all files in it, for good?", "nothing was removed");
}

// Of a disk (`pif up --disk`), as soon as no root is in it any more.
void remove_disk_folder(const cluster::Cluster& cluster, const std::string& root) {
  const std::filesystem::path folder = std::filesystem::path(root).parent_path();
  if (folder == cluster::disk_folder(folder.parent_path().string(), cluster.id)) ::rmdir(folder.c_str());
}

Result<Removal> remove_all(const cluster::Cluster& cluster, const Plan& plan) {
  // No `up` begins meanwhile; one that waits finds no pif.toml. The key may have gone already.
  const auto alone = lock_out_starters(cluster, kSystemUpDeadline);
  if (!alone && alone.error().code != Code::kNotFound) return fail(alone.error());
  PIF_TRY_VALUE(const std::size_t running, count_running(cluster));
  if (running > 0)
    return fail(Code::kBusy, fmt::format("{} daemons of {} run again: stop them first", running, cluster.folder));
  Removal removal;
  for (const cluster::LfsEntry* lfs : plan.roots) PIF_TRY(remove_known(lfs->root, known_in_root(*lfs), removal));
  for (const cluster::LfsEntry& lfs : cluster.lfss) remove_disk_folder(cluster, lfs.root);
  PIF_TRY(remove_known(cluster.server_folder(), known_in_server(), removal));
  PIF_TRY(remove_known(cluster.folder + "/run", known_in_run(), removal));
  Removal last;
  PIF_TRY(remove_known(cluster.folder, known_in_folder(), last));
  removal.files += last.files;
  for (std::string& path : last.left) {  // what was left in a folder is named, and not the folder, too
    const auto holds = [&](const std::string& known) { return known == path || known.starts_with(path + "/"); };
    if (std::none_of(removal.left.begin(), removal.left.end(), holds)) removal.left.push_back(std::move(path));
  }
  return removal;
}

Outcome destroy(const Program& program, const DestroyOptions& options) {
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(options.folder));
  PIF_TRY(check_owner(cluster));
  const Plan plan = plan_for(cluster);
  if (!options.yes) PIF_TRY(ask(cluster, plan));
  if (options.yes && !program.common.quiet && !program.common.json) say_folders(plan);
  PIF_TRY_VALUE(const Stopped stopped, take_down(cluster));
  PIF_TRY_VALUE(const Removal removal, remove_all(cluster, plan));
  if (const Status forgotten = cluster::forget_cluster(cluster.folder); !forgotten && program.common.verbose)
    print_error(fmt::format("pif: {}\n", one_line(forgotten.error().to_string())));
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", cluster.folder},
                       {"stopped", stopped.asked},
                       {"removed_files", removal.files},
                       {"left", removal.left},
                       {"removed_roots", plan.elsewhere},
                       {"untouched_roots", plan.untouched}}));
    return ExitCode::kDone;
  }
  if (program.common.quiet) return ExitCode::kDone;
  if (cluster.hosts.size() > 1)
    print_error(fmt::format("pif: only this host's part: say pif destroy on each of the {} others, too\n",
                            cluster.hosts.size() - 1));
  for (const std::string& left : removal.left)
    print_error(fmt::format("pif: left, because it is not the file system's: {}\n", one_line(left)));
  PIF_TRY(print(fmt::format("{} is removed: {} files\n", shown(cluster.folder), removal.files)));
  return ExitCode::kDone;
}

}  // namespace

void add_destroy_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<DestroyOptions>();
  CLI::App* command = add_command(
      app, program, "destroy", "Remove a whole file system, with everything in it",
      "  pif destroy /data/pif             says what it will remove, and asks\n  pif destroy --yes /data/pif");
  command->add_option("DIR", options->folder, "Folder of the file system")->required();
  command->add_flag("-y,--yes", options->yes, "Do not ask");
  on_run(command, program, options, destroy);
}

}  // namespace pif::cli
