#include "daemons/daemons.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "command/io.h"
#include "text/text.h"

extern char** environ;

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kLogTailBytes = 4096;
constexpr std::size_t kProcessNameBytes = 15;  // of a program's name, in /proc/PID/comm
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
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)};
    for (const int result : results) {
      if (result != 0) return result;
    }
    return 0;
  }
  int run(std::vector<std::string> arguments, std::vector<std::string> variables, pid_t& pid) {
    std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
    return ::posix_spawn(&pid, argv[0], &actions_, &attributes_, argv.data(), envp.data());
  }

 private:
  static std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (auto& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// This process's environment, but for the socket that it is itself to notify.
std::vector<std::string> variables_with(const std::string& notify) {
  constexpr std::string_view kName = "NOTIFY_SOCKET=";
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(kName)) variables.emplace_back(*variable);
  }
  if (!notify.empty()) variables.push_back(std::string(kName) + notify);
  return variables;
}

Result<std::string> read_some(int fd, off_t offset, std::size_t bytes, const std::string& name) {
  std::string text(bytes, '\0');
  if (::lseek(fd, offset, SEEK_SET) < 0) return fail_errno(errno, "cannot read " + name);
  PIF_TRY_VALUE(const std::size_t n, read_full(fd, std::as_writable_bytes(std::span(text)), name));
  text.resize(n);
  return text;
}

std::string program_of(const Daemon& daemon) { return std::filesystem::path(daemon.arguments[0]).filename().string(); }

// Whether the process runs that program for that user. False also if it has ended.
bool runs(pid_t pid, const std::string& program, uid_t user) {
  const std::string folder = fmt::format("/proc/{}", pid);
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0 || about.st_uid != user) return false;
  UniqueFd fd(::open((folder + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  const auto name = read_some(fd.get(), 0, kProcessNameBytes + 1, folder);
  return name && *name == program.substr(0, kProcessNameBytes) + "\n";
}

// The daemon's process, if that is what `pid` is: what a lock says is its folder's owner's to choose, and what it said
// before the daemon had written its number is out of date. None if it is not, or not known yet.
Result<UniqueFd> process_of(const Daemon& daemon, pid_t pid, uid_t owner) {
  if (pid <= 0) return UniqueFd();
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    if (errno == ESRCH || errno == EINVAL || errno == ENOENT) return UniqueFd();  // none, or a thread's number
    return fail_errno(errno, fmt::format("cannot look at {} (process {})", daemon.name, pid));
  }
  // Looked at when it is open already: should the number pass to another process, a signal to this one goes nowhere.
  return runs(pid, program_of(daemon), owner) ? std::move(process) : UniqueFd();
}

// Who holds a daemon's lock.
struct LockHolder {
  Daemon daemon;
  pid_t pid = 0;      // as the lock says
  bool told = false;  // has got the signal
};

Status tell(LockHolder& held, uid_t owner, int signal) {
  PIF_TRY_VALUE(const UniqueFd process, process_of(held.daemon, held.pid, owner));
  if (!process) return {};
  held.told = ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
  if (held.told || errno == ESRCH) return {};
  return fail_errno(errno, fmt::format("cannot stop {} (process {})", held.daemon.name, held.pid));
}

// Signals each as soon as it is known, once, and waits until nobody holds the lock of any; returns who still does at
// the deadline.
Result<std::vector<LockHolder>> tell_all(std::vector<LockHolder> waiting, uid_t owner, int signal,
                                         SteadyClock::time_point deadline) {
  while (true) {
    std::vector<LockHolder> left;
    for (auto& one : waiting) {
      PIF_TRY_VALUE(const auto pid, holder(one.daemon));
      if (!pid) continue;
      one.pid = *pid;
      if (!one.told) PIF_TRY(tell(one, owner, signal));
      left.push_back(std::move(one));
    }
    if (left.empty() || SteadyClock::now() >= deadline) return left;
    waiting = std::move(left);
    std::this_thread::sleep_for(kLockPoll);
  }
}

}  // namespace

std::vector<Daemon> daemons_of(const cluster::Cluster& cluster, const std::string& programs) {
  std::vector<Daemon> out;
  if (cluster.serves_here())
    out.push_back({"server", cluster.server_folder(), {programs + "/pif-server", "run", cluster.folder}});
  for (const auto& lfs : cluster.lfss) {
    if (cluster.is_here(lfs)) out.push_back({lfs.name, lfs.root, {programs + "/pif-lfs", cluster.folder, lfs.name}});
  }
  return out;
}

Daemon runner_of(const cluster::Cluster& cluster, const std::string& programs) {
  return {"pif host run", cluster.folder, {programs + "/pif", "host", "run", cluster.folder}};
}

Result<std::optional<pid_t>> holder(const Daemon& daemon) {
  const std::string path = daemon.lock();
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<pid_t>{};
    return fail_errno(errno, "cannot look at the lock " + path);
  }
  // A shared lock is refused exactly while the daemon holds its exclusive one, and two lookers do not disturb each
  // other.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return std::optional<pid_t>{};
  if (errno != EWOULDBLOCK) return fail_errno(errno, "cannot look at the lock " + path);
  PIF_TRY_VALUE(const std::string text, read_some(fd.get(), 0, 32, path));
  const auto pid = parse_number(text.substr(0, text.find_first_not_of("0123456789")), path);
  return std::optional<pid_t>(pid && std::in_range<pid_t>(*pid) ? static_cast<pid_t>(*pid) : 0);
}

Result<uid_t> owner_of(const cluster::Cluster& cluster) {
  const std::string path = cluster.folder + "/pif.toml";
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return fail_errno(errno, "cannot look at " + path);
  return about.st_uid;
}

namespace {

bool is_file_at(const std::string& path, int fd) {
  struct stat named {
  }, opened{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

}  // namespace

Result<UniqueFd> lock_out_starters(const cluster::Cluster& cluster, std::chrono::milliseconds deadline) {
  const std::string path = cluster.folder + "/keys/cluster.key";  // a file that nobody else can open, and so lock
  const auto end = SteadyClock::now() + deadline;
  UniqueFd fd;
  while (true) {
    fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "cannot open " + path);
    const bool has_locked = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
    if (has_locked && is_file_at(path, fd.get())) break;
    if (has_locked) continue;  // the key was changed meanwhile: that is another file
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(errno, "cannot lock " + path);
    if (SteadyClock::now() >= end)
      return fail(
          Code::kBusy,
          fmt::format("somebody else has been starting or stopping {} for {} s: see who with ps, or fuser {}",
                      cluster.folder, std::chrono::duration_cast<std::chrono::seconds>(deadline).count(), path));
    std::this_thread::sleep_for(kLockPoll);
  }
  return fd;
}

Result<pid_t> start(const Daemon& daemon, const std::string& notify) {
  const std::string& program = daemon.arguments[0];
  if (::mkdir(daemon.folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(errno, "cannot make the folder " + daemon.folder);
  UniqueFd log(::open(daemon.log().c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return fail_errno(errno, "cannot write the log " + daemon.log());
  SpawnPlan plan;
  pid_t pid = 0;
  int error = plan.arrange(log.get());
  if (error == 0) error = plan.run(daemon.arguments, variables_with(notify), pid);
  if (error != 0) return fail_errno(error, fmt::format("cannot start {} as {}", program, daemon.name));
  return pid;
}

Result<Stopped> stop(const std::vector<Daemon>& daemons, uid_t owner, std::chrono::milliseconds deadline) {
  Stopped out;
  std::vector<LockHolder> running;
  for (const auto& daemon : daemons) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    if (!pid) continue;
    out.asked.push_back(daemon.name);
    running.push_back({daemon, *pid});
  }
  PIF_TRY_VALUE(const auto left, tell_all(std::move(running), owner, SIGTERM, SteadyClock::now() + deadline));
  std::vector<LockHolder> stubborn, unknown;
  for (const auto& one : left) (one.told ? stubborn : unknown).push_back({one.daemon, one.pid});
  for (const auto& one : stubborn) out.killed.push_back(one.daemon.name);
  PIF_TRY_VALUE(stubborn, tell_all(std::move(stubborn), owner, SIGKILL, SteadyClock::now() + deadline));
  if (!stubborn.empty())
    return fail(Code::kTimeout, fmt::format("{} still holds {} after SIGKILL; see what hangs with ps",
                                            stubborn[0].daemon.name, stubborn[0].daemon.lock()));
  if (!unknown.empty())
    return fail(
        Code::kPermission,
        fmt::format("somebody holds {0}, and the process it names ({1}) is no {2} of user {3}, who owns the file "
                    "system, so it was sent no signal: see who has it with fuser {0}",
                    unknown[0].daemon.lock(), unknown[0].pid, program_of(unknown[0].daemon), owner));
  return out;
}

Result<Stopped> take_down(const cluster::Cluster& cluster) {
  PIF_TRY_VALUE(const uid_t owner, owner_of(cluster));
  const auto alone =
      lock_out_starters(cluster, kSystemUpDeadline + kSystemDownDeadline);  // no daemon of an `up` under way is stopped
  if (!alone && alone.error().code == Code::kBusy) return fail(alone.error());
  // What would start them again goes first; it takes its daemons with it.
  PIF_TRY_VALUE(const Stopped runner, stop({runner_of(cluster, program_folder())}, owner, 2 * kSystemDownDeadline));
  PIF_TRY_VALUE(Stopped stopped, stop(daemons_of(cluster, program_folder()), owner, kSystemDownDeadline));
  stopped.asked.insert(stopped.asked.begin(), runner.asked.begin(), runner.asked.end());
  cluster::remove_short_run_folder(cluster);
  return stopped;
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
