#include "hosts/one_host.h"

#include <chrono>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "daemons/daemons.h"
#include "daemons/roots.h"
#include "daemons/startup.h"
#include "pif/base/version.h"
#include "pif/cluster/key_file.h"

namespace pif::cli {
namespace {

Json answer_of(const cluster::Cluster& cluster) {
  return {{"host", cluster.own_host}, {"edition", cluster.edition}, {"version", version()}};
}

Status check_known(const cluster::Cluster& cluster, const KnownSystem& known) {
  if (!known.id.empty() && known.id != cluster.id)
    return fail(Code::kInvalid, fmt::format("{} is another file system, {} and not {}: name another folder in pif.toml",
                                            cluster.folder, cluster.id, known.id));
  if (known.edition != 0 && known.edition < cluster.edition)
    return fail(Code::kBusy, fmt::format("{}/pif.toml is newer, edition {} and not {}: run pif up on this host",
                                         cluster.folder, cluster.edition, known.edition));
  PIF_TRY_VALUE(const cluster::KeyFile keys, cluster::load_key_file(cluster));
  if (!known.id.empty() && known.key_number < keys.number)
    return fail(Code::kBusy, fmt::format("{}/keys/cluster.key is newer, number {} and not {}: run pif up on this host",
                                         cluster.folder, keys.number, known.key_number));
  return {};
}

Result<bool> lacks_news(const cluster::Cluster& cluster, const KnownSystem& known) {
  PIF_TRY_VALUE(const cluster::KeyFile keys, cluster::load_key_file(cluster));
  return known.edition > cluster.edition || known.key_number > keys.number;
}

Json daemons_in(const std::vector<Daemon>& daemons, const Startup& startup) {
  Json out = Json::array();
  for (const Daemon& daemon : daemons) {
    const pid_t started = startup.pid_of(daemon.name);
    const auto running = holder(daemon);
    out.push_back(
        {{"name", daemon.name}, {"pid", running && *running ? **running : started}, {"started", started != 0}});
  }
  return out;
}

}  // namespace

Result<cluster::Cluster> load_system(const std::string& folder) {
  auto cluster = cluster::load_cluster(folder);
  if (!cluster && cluster.error().code == Code::kInvalid) cluster.error().code = Code::kCorrupt;
  return cluster;
}

Result<Json> up_here(const std::string& folder, const KnownSystem& known) {
  PIF_TRY_VALUE(cluster::Cluster cluster, load_system(folder));
  PIF_TRY(check_known(cluster, known));
  Json answer = answer_of(cluster);
  PIF_TRY_VALUE(const bool behind, lacks_news(cluster, known));
  if (behind) {
    answer["behind"] = true;
    return answer;
  }
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  if (cluster.has_hosts()) PIF_TRY(cluster::check_ready(cluster));
  if (!cluster.has_hosts()) PIF_TRY(make_ready(cluster));
  PIF_TRY_VALUE(std::vector<Daemon> daemons, daemons_with_roots(cluster));
  PIF_TRY(check_unshared(cluster));
  PIF_TRY_VALUE(const ReadyListener listener, ReadyListener::open());
  Startup startup(listener.address());
  PIF_TRY(startup.start_missing(daemons));
  PIF_TRY(startup.await_ready(listener, std::chrono::steady_clock::now() + kSystemUpDeadline));
  startup.keep();
  std::erase_if(daemons, [&](const Daemon& daemon) { return startup.failed().count(daemon.name) != 0; });
  answer["daemons"] = daemons_in(daemons, startup);
  answer["failed"] = Json::array();
  for (const Error& error : startup.errors()) answer["failed"].push_back(error.text);
  if (const Status roots = check_roots_there(cluster); !roots) answer["failed"].push_back(roots.error().text);
  return answer;
}

Result<Json> down_here(const std::string& folder) {
  PIF_TRY_VALUE(const cluster::Cluster cluster, load_system(folder));
  PIF_TRY_VALUE(const Stopped stopped, take_down(cluster));
  Json answer = answer_of(cluster);
  answer["stopped"] = stopped.asked;
  answer["killed"] = stopped.killed;
  return answer;
}

Result<Json> status_here(const std::string& folder) {
  PIF_TRY_VALUE(const cluster::Cluster cluster, load_system(folder));
  Json answer = answer_of(cluster);
  answer["daemons"] = Json::array();
  for (const Daemon& daemon : daemons_of(cluster, program_folder())) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    answer["daemons"].push_back({{"name", daemon.name},
                                 {"state", pid ? "running" : "down"},
                                 {"pid", pid.value_or(0)},
                                 {"root", daemon.folder}});
  }
  return answer;
}

Result<Json> receive_here(const std::string& folder, const cluster::HostFiles& files, const std::string& lfs) {
  PIF_TRY_VALUE(const cluster::Cluster cluster, files.host.empty() ? cluster::take_shared_files(folder, files.shared)
                                                                   : cluster::receive_host(folder, files));
  if (files.host.empty() && !files.cluster_key.empty())
    PIF_TRY(cluster::take_key_file(cluster.folder, files.cluster_key));
  if (cluster.stage == cluster::Stage::kNew) {
    PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
    PIF_TRY(make_own_roots(cluster));
  }
  PIF_TRY(make_missing_root(cluster, lfs));
  return answer_of(cluster);
}

}  // namespace pif::cli
