#include "daemons.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "io.h"
#include "text.h"

extern char** environ;

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kLogTailBytes = 4096;
constexpr auto kLockPoll = std::chrono::milliseconds(5);

// One posix_spawn with what a daemon needs; destroys its parts whatever happens.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // 0, or the errno of what could not be arranged.
  int arrange(int log_fd) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    const std::array<int, 8> results = {
        ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0),
        ::posix_spawn_file_actions_adddup2(&actions_, log_fd, 1),
        ::posix_spawn_file_actions_adddup2(&actions_, log_fd, 2),
        ::posix_spawn_file_actions_addchdir_np(&actions_, "/"),
        ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3),
        ::posix_spawnattr_setsigmask(&attributes_, &none),
        ::posix_spawnattr_setsigdefault(&attributes_, &all),
        ::posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)};
    for (const int result : results) {
      if (result != 0) return result;
    }
    return 0;
  }
  int run(const std::vector<std::string>& arguments, pid_t& pid) {
    std::vector<std::string> words = arguments;
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return ::posix_spawn(&pid, argv[0], &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Result<std::string> read_some(int fd, off_t offset, std::size_t bytes, const std::string& name) {
  std::string text(bytes, '\0');
  if (::lseek(fd, offset, SEEK_SET) < 0) return fail_errno(errno, "cannot read " + name);
  PIF_TRY_VALUE(const std::size_t n, read_full(fd, std::as_writable_bytes(std::span(text)), name));
  text.resize(n);
  return text;
}

// Waits until nobody holds the lock of any; returns who still does at the deadline.
Result<std::vector<Daemon>> await_free(std::vector<Daemon> waiting, SteadyClock::time_point deadline) {
  while (true) {
    std::vector<Daemon> held;
    for (auto& daemon : waiting) {
      PIF_TRY_VALUE(const auto pid, holder(daemon));
      if (pid) held.push_back(std::move(daemon));
    }
    if (held.empty() || SteadyClock::now() >= deadline) return held;
    waiting = std::move(held);
    std::this_thread::sleep_for(kLockPoll);
  }
}

Status signal_holder(const Daemon& daemon, int signal) {
  PIF_TRY_VALUE(const auto pid, holder(daemon));
  if (!pid || *pid <= 0) return {};
  if (::kill(*pid, signal) != 0 && errno != ESRCH)
    return fail_errno(errno, fmt::format("cannot stop {} (process {})", daemon.name, *pid));
  return {};
}

}  // namespace

std::vector<Daemon> daemons_of(const cluster::Cluster& cluster, const std::string& programs) {
  std::vector<Daemon> out;
  out.push_back({"server", cluster.server_folder(), {programs + "/pif-server", "run", cluster.folder}});
  for (const auto& lfs : cluster.lfss) out.push_back({lfs.name, lfs.root, {programs + "/pif-lfs", cluster.folder, lfs.name}});
  return out;
}

Result<std::optional<pid_t>> holder(const Daemon& daemon) {
  const std::string path = daemon.lock();
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<pid_t>{};
    return fail_errno(errno, "cannot look at the lock " + path);
  }
  // A shared lock is refused exactly while the daemon holds its exclusive one, and two lookers do not disturb each other.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return std::optional<pid_t>{};
  if (errno != EWOULDBLOCK) return fail_errno(errno, "cannot look at the lock " + path);
  PIF_TRY_VALUE(const std::string text, read_some(fd.get(), 0, 32, path));
  const auto pid = parse_number(text.substr(0, text.find_first_not_of("0123456789")), path);
  return std::optional<pid_t>(pid ? static_cast<pid_t>(*pid) : 0);
}

Result<UniqueFd> lock_out_starters(const cluster::Cluster& cluster, std::chrono::milliseconds deadline) {
  const std::string path = cluster.folder + "/keys/cluster.key";  // a file that nobody else can open, and so lock
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot open " + path);
  const auto end = SteadyClock::now() + deadline;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(errno, "cannot lock " + path);
    if (SteadyClock::now() >= end)
      return fail(Code::kBusy, fmt::format("somebody else has been starting {} for {} s: see who with ps, or fuser {}", cluster.folder,
                                           std::chrono::duration_cast<std::chrono::seconds>(deadline).count(), path));
    std::this_thread::sleep_for(kLockPoll);
  }
  return fd;
}

Result<pid_t> start(const Daemon& daemon) {
  const std::string& program = daemon.arguments[0];
  if (::mkdir(daemon.folder.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(errno, "cannot make the folder " + daemon.folder);
  UniqueFd log(::open(daemon.log().c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return fail_errno(errno, "cannot write the log " + daemon.log());
  SpawnPlan plan;
  pid_t pid = 0;
  int error = plan.arrange(log.get());
  if (error == 0) error = plan.run(daemon.arguments, pid);
  if (error != 0) return fail_errno(error, fmt::format("cannot start {} as {}", program, daemon.name));
  return pid;
}

Result<Stopped> stop(const std::vector<Daemon>& daemons, std::chrono::milliseconds deadline) {
  Stopped out;
  std::vector<Daemon> running;
  for (const auto& daemon : daemons) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    if (!pid) continue;
    running.push_back(daemon);
    out.asked.push_back(daemon.name);
    PIF_TRY(signal_holder(daemon, SIGTERM));
  }
  PIF_TRY_VALUE(auto stubborn, await_free(std::move(running), SteadyClock::now() + deadline));
  for (const auto& daemon : stubborn) {
    out.killed.push_back(daemon.name);
    PIF_TRY(signal_holder(daemon, SIGKILL));
  }
  PIF_TRY_VALUE(stubborn, await_free(std::move(stubborn), SteadyClock::now() + deadline));
  if (!stubborn.empty())
    return fail(Code::kTimeout, fmt::format("{} still holds {} after SIGKILL; see what hangs with ps", stubborn[0].name,
                                            stubborn[0].lock()));
  return out;
}

std::string last_log_line(const Daemon& daemon) {
  UniqueFd fd(::open(daemon.log().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  const off_t start = size > static_cast<off_t>(kLogTailBytes) ? size - static_cast<off_t>(kLogTailBytes) : 0;
  auto text = read_some(fd.get(), start, kLogTailBytes, daemon.log());
  if (!text) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  const std::size_t line = text->rfind('\n');
  return line == std::string::npos ? *text : text->substr(line + 1);
}

}  // namespace pif::cli
