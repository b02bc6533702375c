// pif-lfs: the daemon of one local file system, and its checker.
//
//   pif-lfs run --cluster DIR NAME     serves LFS NAME of the file system in DIR, until SIGTERM or SIGINT
//   pif-lfs DIR NAME                   the same
//   pif-lfs check ROOT                 reads a root that no daemon serves: exit code 0 clean, 1 damaged, 3 cannot
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <iostream>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "pif/base/print.h"
#include "pif/base/version.h"
#include "pif/cluster/cluster.h"
#include "pif/cluster/key_file.h"
#include "pif/cluster/notify.h"
#include "pif/component/real_storage.h"
#include "pif/kv/lmdb_store.h"
#include "pif/lfs/lfs.h"
#include "pif/lfs/real_spawner.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"

namespace {

using namespace pif;

enum Exit { kExitOk = 0, kExitDamaged = 1, kExitUsage = 2, kExitCannot = 3 };
constexpr unsigned kExecutorThreads = 8;  // half of them for reads that wait for the disk
constexpr rlim_t kFilesWanted = 65536;

// What a signal handler can reach. Set before the handlers are installed, and never changed afterwards.
std::atomic<bool> stop_asked = false;
net::Messenger* woken_by_signal = nullptr;

void on_signal(int) {
  stop_asked.store(true, std::memory_order_release);
  woken_by_signal->wake();
}

void catch_signals(net::Messenger& messenger) {
  woken_by_signal = &messenger;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

// Components and peers are files: take as many as we may.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kFilesWanted));
  setrlimit(RLIMIT_NOFILE, &limit);
}

// pif-exec is installed beside this program.
std::string helper_path() {
  std::array<char, 4096> path{};
  const auto length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return "/usr/bin/pif-exec";
  const std::string self(path.data(), static_cast<std::size_t>(length));
  return self.substr(0, self.rfind('/')) + "/pif-exec";
}

// For whoever looks after the machine: an old kernel gives less (docs/SECURITY.md "Workers").
void say_how_workers_are_held() {
  const long landlock = std::max(syscall(SYS_landlock_create_ruleset, nullptr, 0, 1), 0L);
  const bool seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
  spdlog::info("workers are held by limits, {} and {}",
               landlock > 0 ? fmt::format("Landlock (version {})", landlock) : "no Landlock",
               seccomp ? "seccomp" : "no seccomp");
  if (landlock < 6) spdlog::info("this kernel does not keep workers from signalling processes of their own user");
}

Result<cluster::LfsEntry> entry_of(const cluster::Cluster& cluster, const std::string& name) {
  for (const auto& entry : cluster.lfss) {
    if (entry.name == name && cluster.is_here(entry)) return entry;
    if (entry.name == name)
      return fail(Code::kInvalid, fmt::format("{}/pif.toml says that {} runs on host {}, and this is host {}",
                                              cluster.folder, name, entry.host, cluster.own_host));
  }
  return fail(Code::kNotFound, fmt::format("{}/pif.toml has no LFS named {}", cluster.folder, name));
}

Status lock(component::Storage& storage, const std::string& root) {
  return cluster::lock_patiently([&] { return storage.lock(root); });
}

// LMDB and the lock would make what is missing.
Status check_root_there(const std::string& root) {
  for (const char* part : {"/lfs.toml", "/catalogue/data.mdb"})
    if (access((root + part).c_str(), F_OK) != 0)
      return fail(Code::kNotFound, fmt::format("{}{} is missing: is the disk mounted?", root, part));
  return {};
}

lfs::RootIdentity identity_of(const cluster::Cluster& cluster, const cluster::LfsEntry& entry) {
  return {cluster.id, entry.id, entry.name, entry.uuid};
}

// Makes the root of a new LFS, or takes over that of an earlier release.
Status init(const std::string& folder, const std::string& name, bool replace) {
  PIF_TRY_VALUE(const auto cluster, cluster::load_cluster(folder));
  PIF_TRY_VALUE(const auto entry, entry_of(cluster, name));
  const bool is_new = replace || cluster.stage == cluster::Stage::kNew;
  if (!is_new && cluster.stage != cluster::Stage::kAdopting)
    return fail(Code::kInvalid, fmt::format("{}/pif.toml says that its folders are there already", cluster.folder));
  auto storage = component::make_real_storage();
  if (is_new) PIF_TRY(storage->make_folder(entry.root));
  if (!is_new) PIF_TRY(check_root_there(entry.root));
  PIF_TRY(cluster::check_unshared(cluster, entry.root));
  PIF_TRY(lock(*storage, entry.root));
  PIF_TRY(cluster::note_user(cluster, entry.root));
  if (is_new) PIF_TRY(storage->make_folder(entry.root + "/catalogue"));
  PIF_TRY_VALUE(auto catalogue, kv::open_lmdb(entry.root + "/catalogue", lfs::kCatalogueTables));
  const auto identity = identity_of(cluster, entry);
  return is_new ? lfs::make_root(*storage, *catalogue, entry.root, identity)
                : lfs::adopt_root(*storage, *catalogue, entry.root, identity);
}

// Where workers may listen for those of other machines: at this daemon's own address, at ports that pif.toml gives.
Result<std::string> worker_listen(const cluster::Cluster& cluster, const std::string& name) {
  PIF_TRY_VALUE(const net::ListenOptions own, cluster.listen_options(name));
  if (own.tcp.empty()) return std::string();
  const bool any = cluster.worker_ports.empty() || cluster.worker_ports == "any";
  return own.tcp.substr(0, own.tcp.rfind(':') + 1) + (any ? "0" : cluster.worker_ports);
}

// What the server's host has of it reaches the folder of this host.
void share_description(lfs::Config& config, cluster::Watched& description) {
  config.host = description.current().own_host;
  config.edition = [&description] {
    description.changed();
    return description.current().edition;
  };
  config.take_files = [&description](const auto& files) -> Status {
    std::vector<cluster::SharedFile> shared;
    for (const proto::ClusterFile& file : files) shared.push_back({file.name(), file.content()});
    PIF_TRY(cluster::take_shared_files(description.current().folder, shared));
    return {};
  };
}

// Also kept from workers is what the kernel shows: root's could change the machine there.
lfs::WorkerRules worker_rules(cluster::Watched& description) {
  description.changed();
  const cluster::Cluster& cluster = description.current();
  lfs::WorkerRules rules{cluster.grants, cluster.worker_memory_bounded, cluster.private_folders()};
  for (const char* const folder : {"/proc", "/sys"}) rules.kept_away.emplace_back(folder);
  return rules;
}

Status serve(const std::string& folder, const std::string& name) {
  PIF_TRY_VALUE(const auto cluster, cluster::load_cluster(folder));
  PIF_TRY_VALUE(const auto entry, entry_of(cluster, name));
  PIF_TRY(cluster::check_ready(cluster));
  auto storage = component::make_real_storage();
  PIF_TRY(check_root_there(entry.root));
  PIF_TRY(cluster::check_unshared(cluster, entry.root));
  PIF_TRY(lock(*storage, entry.root));
  PIF_TRY(cluster::note_user(cluster, entry.root));
  PIF_TRY_VALUE(auto catalogue, kv::open_lmdb(entry.root + "/catalogue", lfs::kCatalogueTables));

  PIF_TRY_VALUE(auto messenger, cluster::start_listening(cluster, name));
  lfs::Config config;
  config.node = entry.id;
  config.name = name;
  config.cluster = cluster.id;
  config.root = entry.root;
  config.uuid = entry.uuid;
  PIF_TRY_VALUE(const auto keys, cluster::load_key_file(cluster));
  cluster::WatchedKeys watched_keys(cluster, keys);
  config.key = watched_keys.ring();
  config.look_at_keys = [&watched_keys, clock = net::SystemClock()] { watched_keys.look(clock.wall_seconds()); };
  config.look_at_keys();
  PIF_TRY(cluster::check_server_key(cluster));
  config.endpoints = net::listening(*messenger);
  config.endpoints.set_machine(cluster.machine());
  config.server = cluster.server_endpoints();
  cluster::Watched description(cluster);
  if (cluster.has_hosts()) share_description(config, description);
  config.worker_rules = [&description] { return worker_rules(description); };
  config.uid = getuid();
  config.pid = getpid();

  const net::SystemClock clock;
  lfs::DiskHealth health(clock);
  const auto watched = lfs::watch(*storage, health);
  net::ThreadExecutor executor(*messenger, kExecutorThreads);
  net::SystemEntropy entropy;
  PIF_TRY_VALUE(std::string listen, worker_listen(cluster, name));
  const auto spawner = lfs::make_real_spawner(helper_path(), std::move(listen));
  lfs::World world{
      *messenger, *watched, *catalogue, executor, *spawner, entropy, [&executor] { executor.run_completions(); },
      &health};
  lfs::Lfs lfs(std::move(config), std::move(world));
  catch_signals(*messenger);
  PIF_TRY(lfs.open());
  cluster::notify_ready();
  say_how_workers_are_held();
  PIF_TRY(lfs.serve(stop_asked));
  spdlog::info("{} stops", name);
  return {};
}

int run(const std::string& folder, const std::string& name, bool verbose) {
  net::tune_allocator();
  raise_file_limit();
  cluster::start_logging(name, verbose);
  const auto served = serve(folder, name);
  if (served) return kExitOk;
  spdlog::error("{}", served.error().to_string());
  return kExitCannot;
}

Result<lfs::CheckReport> check_locked(const std::string& root, bool sums) {
  auto storage = component::make_real_storage();
  PIF_TRY(storage->list(root));
  PIF_TRY(lock(*storage, root));
  PIF_TRY(storage->list(root + "/catalogue"));  // a checker makes none
  PIF_TRY_VALUE(auto catalogue, kv::open_lmdb(root + "/catalogue", lfs::kCatalogueTables));
  return lfs::check_root(*storage, *catalogue, root, sums);
}

void print_json(const std::string& root, const lfs::CheckReport& report) {
  using Json = nlohmann::ordered_json;
  const Json document = {{"root", root},
                         {"components", report.components},
                         {"bytes", report.bytes},
                         {"leftovers", report.leftovers.size()},
                         {"damages", report.damages}};
  fmt::print("{}\n", document.dump(-1, ' ', false, Json::error_handler_t::replace));
}

int check(const std::string& root, bool sums, bool json) {
  cluster::start_logging("check", false);  // to stderr: stdout is for the report
  const auto report = check_locked(root, sums);
  if (!report) {
    fmt::print(stderr, "pif-lfs check: {}\n", one_line(report.error().to_string()));
    return kExitCannot;
  }
  if (json) {
    print_json(root, *report);
  } else {
    for (const auto& damage : report->damages) fmt::print("{}\n", one_line(damage));
    for (const auto& leftover : report->leftovers) fmt::print("{}\n", one_line(leftover));
    fmt::print("{}: {} components, {} bytes, {} leftovers, {} damages{}\n", root, report->components, report->bytes,
               report->leftovers.size(), report->damages.size(), sums ? "" : " (sums not checked: --sums)");
  }
  return report->damages.empty() ? kExitOk : kExitDamaged;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The daemon of one local file system of PIF, and its checker");
  app.set_version_flag("--version", fmt::format("pif-lfs {}", version()));
  std::string folder;
  std::string name;
  std::string root;
  bool verbose = false;
  bool sums = false;
  bool json = false;
  app.add_option("DIR", folder, "folder of the file system, with pif.toml");
  app.add_option("NAME", name, "name of the LFS in pif.toml, such as lfs0");
  app.add_flag("-v,--verbose", verbose, "log more");
  auto* run_command = app.add_subcommand("run", "serve an LFS until SIGTERM");
  run_command->add_option("--cluster", folder, "folder of the file system, with pif.toml")->required();
  run_command->add_option("NAME", name, "name of the LFS in pif.toml, such as lfs0")->required();
  run_command->add_flag("-v,--verbose", verbose, "log more");
  bool replace = false;
  auto* init_command =
      app.add_subcommand("init", "make the root of a new LFS, or take over an earlier release's (`pif up` does)");
  init_command->add_option("--cluster", folder, "folder of the file system, with pif.toml")->required();
  init_command->add_option("NAME", name, "name of the LFS in pif.toml, such as lfs0")->required();
  init_command->add_flag("--replace", replace, "an empty root for an LFS whose disk is lost (`pif node replace` does)");
  auto* check_command = app.add_subcommand("check", "check the root of an LFS that is not running");
  check_command->add_option("ROOT", root, "the LFS's folder")->required();
  check_command->add_flag("--sums", sums, "read everything and verify every checksum");
  check_command->add_flag("--json", json, "print one JSON document");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (check_command->parsed()) return check(root, sums, json);
  if (init_command->parsed()) {
    const Status done = init(folder, name, replace);
    if (!done) fmt::print(stderr, "pif-lfs: {}\n", done.error().to_string());
    return done ? kExitOk : kExitCannot;
  }
  if (!folder.empty() && !name.empty()) return run(folder, name, verbose);
  fmt::print(stderr, "{}", app.help());
  return kExitUsage;
}
