// pif-server: the PIF Server's process. `pif up` starts it; what it does is in server/.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "pif/base/handle.h"
#include "pif/base/print.h"
#include "pif/base/version.h"
#include "pif/cluster/cluster.h"
#include "pif/cluster/key_file.h"
#include "pif/cluster/notify.h"
#include "pif/kv/lmdb_store.h"
#include "pif/net/real_messenger.h"
#include "pif/net/system.h"
#include "pif/server/server.h"

namespace {

using namespace pif;

constexpr int kExitDone = 0, kExitNegative = 1, kExitUsage = 2, kExitFailed = 3;  // as `pif` has them

std::string directory_path(const std::string& server_folder) { return server_folder + "/directory"; }

// fd: of FOLDER/lock. kBusy names who has it.
Status try_lock(int fd, const std::string& folder) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return fail_errno(errno, "cannot lock the folder " + folder);
    char text[32] = {};
    const ssize_t length = ::pread(fd, text, sizeof(text) - 1, 0);
    std::string holder(text, length > 0 ? static_cast<std::size_t>(length) : 0);
    holder.resize(std::min(holder.size(), holder.find('\n')));
    return fail(Code::kBusy,
                fmt::format("the folder {} is in use by process {}", folder, holder.empty() ? "?" : holder));
  }
  return {};
}

// The folder is ours as long as this lives: an exclusive lock on FOLDER/lock, with our process id in it for people.
Result<UniqueFd> lock_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(errno, "cannot make the folder " + folder);
  const std::string path = folder + "/lock";
  UniqueFd fd(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(errno, "cannot lock the folder " + folder);
  PIF_TRY(cluster::lock_patiently([&] { return try_lock(fd.get(), folder); }));
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return fail_errno(errno, "cannot write " + path);
  }
  return fd;
}

// Calls `stop` when SIGTERM or SIGINT comes. Made before all other threads, so that they have both blocked.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void watch(std::function<void()> stop) {
    thread_ = std::thread([this, stop = std::move(stop)] {
      int signal = 0;
      ::sigwait(&signals_, &signal);
      stop();
    });
  }
  ~StopSignals() {
    if (!thread_.joinable()) return;
    ::pthread_kill(thread_.native_handle(), SIGTERM);  // a thread that has ended but is not joined takes it harmlessly
    thread_.join();
  }

 private:
  sigset_t signals_{};
  std::thread thread_;
};

// Whether the folder has a directory: LMDB would make one.
Status check_directory_there(const std::string& server_folder) {
  const std::string path = directory_path(server_folder);
  if (::access((path + "/data.mdb").c_str(), F_OK) == 0) return {};
  return fail(Code::kNotFound, fmt::format("{} is missing or empty: is the disk mounted?", path));
}

server::DirectoryIdentity identity_of(const cluster::Cluster& cluster) { return {cluster.id, cluster.directory}; }

Status check_serves_here(const cluster::Cluster& cluster) {
  if (cluster.serves_here()) return {};
  return fail(Code::kInvalid, fmt::format("{}/pif.toml says that the PIF Server runs on host {}, and this is host {}",
                                          cluster.folder, cluster.servers.front().host, cluster.own_host));
}

// Makes the directory of a new file system, or takes over that of an earlier release.
Status init(const std::string& folder) {
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  PIF_TRY(check_serves_here(cluster));
  const bool is_new = cluster.stage == cluster::Stage::kNew;
  if (!is_new && cluster.stage != cluster::Stage::kAdopting)
    return fail(Code::kInvalid, fmt::format("{}/pif.toml says that its folders are there already", cluster.folder));
  if (!is_new) PIF_TRY(check_directory_there(cluster.server_folder()));
  PIF_TRY_VALUE(const UniqueFd lock, lock_folder(cluster.server_folder()));
  PIF_TRY_VALUE(const auto store, kv::open_lmdb(directory_path(cluster.server_folder()), server::kDirectoryTables));
  if (!is_new) return server::adopt_directory(*store, identity_of(cluster));
  net::SystemClock clock;
  return server::make_directory(*store, identity_of(cluster), ::geteuid(), clock.wall_seconds());
}

std::map<std::uint32_t, std::string> root_uuids(const cluster::Cluster& cluster) {
  std::map<std::uint32_t, std::string> uuids;
  for (const auto& lfs : cluster.lfss) uuids[lfs.id] = lfs.uuid;
  return uuids;
}

// Looks at this host's folder, and says what other hosts are to have of it.
void share_description(server::Config& config, const cluster::Cluster& cluster) {
  config.host = cluster.own_host;
  config.changed_description = [watched = cluster::Watched(cluster), is_first = true]() mutable {
    std::optional<server::Description> out;
    if (!watched.changed() && !std::exchange(is_first, false)) return out;
    const auto files = cluster::read_shared_files(watched.current());
    if (!files) {
      spdlog::error("other hosts do not get the description: {}", files.error().text);
      return out;
    }
    out.emplace();
    out->edition = watched.current().edition;
    out->root_uuids = root_uuids(watched.current());
    for (const cluster::SharedFile& file : *files) {
      out->files.emplace_back().set_name(file.name);
      out->files.back().set_content(file.content);
    }
    return out;
  };
}

Status run(const std::string& folder, bool verbose) {
  net::tune_allocator();
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  PIF_TRY(check_serves_here(cluster));
  PIF_TRY(cluster::check_ready(cluster));
  PIF_TRY(check_directory_there(cluster.server_folder()));
  PIF_TRY(cluster::check_unshared(cluster, cluster.server_folder()));
  PIF_TRY_VALUE(const UniqueFd lock, lock_folder(cluster.server_folder()));
  PIF_TRY(cluster::note_user(cluster, cluster.server_folder()));
  cluster::start_logging("server", verbose);
  server::Config config;
  config.cluster = cluster.id;
  config.uuid = cluster.directory;
  config.root_uuids = root_uuids(cluster);
  PIF_TRY_VALUE(const auto keys, cluster::load_key_file(cluster));
  cluster::WatchedKeys watched_keys(cluster, keys);
  config.key = watched_keys.ring();
  config.look_at_keys = [&watched_keys, clock = net::SystemClock()] { watched_keys.look(clock.wall_seconds()); };
  config.look_at_keys();
  config.owner_uid = ::geteuid();
  config.default_bevy = cluster.bevy;
  if (cluster.has_hosts()) share_description(config, cluster);
  PIF_TRY_VALUE(const auto store, kv::open_lmdb(directory_path(cluster.server_folder()), server::kDirectoryTables));

  std::atomic<bool> stop = false;
  StopSignals signals;
  PIF_TRY_VALUE(const auto messenger, cluster::start_listening(cluster, "server"));
  net::SystemEntropy entropy;
  server::Server server(std::move(config), {*messenger, *store, entropy});
  PIF_TRY(server.open());
  PIF_TRY(cluster::publish_tcp(cluster, "server", net::listening(*messenger)));
  cluster::notify_ready();
  signals.watch([&] {
    stop = true;
    messenger->wake();
  });
  spdlog::info("PIF Server of file system {} serves (process {})", cluster.id, ::getpid());
  Status served = server.serve(stop);
  spdlog::info("PIF Server ends");
  return served;
}

Result<bool> check(const std::string& named) {
  const bool is_cluster = std::filesystem::exists(named + "/pif.toml");
  const std::string folder = is_cluster ? named + "/server" : named;
  if (!std::filesystem::exists(directory_path(folder) + "/data.mdb")) {
    return fail(Code::kNotFound, fmt::format("{} has no directory of a PIF Server in it", folder));
  }
  PIF_TRY_VALUE(const UniqueFd lock, lock_folder(folder));
  PIF_TRY_VALUE(const auto store, kv::open_lmdb(directory_path(folder), server::kDirectoryTables));
  PIF_TRY_VALUE(const server::CheckReport report, server::check_directory(*store));
  for (const std::string& damage : report.damages) fmt::print("{}\n", one_line(damage));
  fmt::print("{} folders, {} files, {} damages\n", report.folders, report.files, report.damages.size());
  return report.damages.empty();
}

int failed(const Error& error) {
  fmt::print(stderr, "pif-server: {}\n", one_line(error.to_string()));
  return kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "The PIF Server of a parallel interleaved file system: its directory, and the life of its files.\n"
      "`pif up DIR` starts it; by hand:\n\n"
      "  pif-server run DIR       serves the file system in DIR until SIGTERM or SIGINT\n"
      "  pif-server check DIR     checks its directory while no server runs");
  app.set_version_flag("--version", fmt::format("pif-server {}", version()));
  std::string folder;
  bool verbose = false;
  app.add_option("DIR", folder, "the same as `run DIR`");
  app.add_flag("--verbose", verbose, "log more");
  CLI::App* runs = app.add_subcommand("run", "serve the file system in DIR until SIGTERM or SIGINT");
  runs->add_option("DIR", folder, "folder of the file system")->required();
  runs->add_flag("--verbose", verbose, "log more");
  CLI::App* inits = app.add_subcommand(
      "init", "make a new file system's directory, or take over an earlier release's (`pif up` does)");
  inits->add_option("DIR", folder, "folder of the file system")->required();
  CLI::App* checks = app.add_subcommand("check", "check the directory in DIR (or DIR/server) while no server runs");
  checks->add_option("DIR", folder, "folder of the file system, or of its server")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  if (folder.empty()) {
    fmt::print(stderr, "{}", app.help());
    return kExitUsage;
  }
  if (inits->parsed()) {
    const Status done = init(folder);
    return done ? kExitDone : failed(done.error());
  }
  if (checks->parsed()) {
    const auto whole = check(folder);
    if (!whole) return failed(whole.error());
    return *whole ? kExitDone : kExitNegative;
  }
  const Status served = run(folder, verbose);
  return served ? kExitDone : failed(served.error());
}
