#include "daemons/daemons.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "daemons/processes.h"
#include "pif/net/caller.h"
#include "text/text.h"

extern char** environ;

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

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
  return runs_for(pid, program_of(daemon), owner) ? std::move(process) : UniqueFd();
}

// Who holds a daemon's lock.
struct LockHolder {
  Daemon daemon;
  pid_t pid = 0;              // as the lock says
  bool is_signalled = false;  // has got the signal
};

Status tell(LockHolder& held, uid_t owner, int signal) {
  PIF_TRY_VALUE(const UniqueFd process, process_of(held.daemon, held.pid, owner));
  if (!process) return {};
  held.is_signalled = ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
  if (held.is_signalled || errno == ESRCH) return {};
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
      if (!one.is_signalled) PIF_TRY(tell(one, owner, signal));
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
  const auto add = [&](const std::string& name, const std::string& folder, std::vector<std::string> arguments) {
    out.push_back({name, folder, std::move(arguments), cluster.unix_path(name), other_user_of(cluster, folder)});
  };
  if (cluster.serves_here()) add("server", cluster.server_folder(), {programs + "/pif-server", "run", cluster.folder});
  for (const auto& lfs : cluster.lfss) {
    if (cluster.is_here(lfs)) add(lfs.name, lfs.root, {programs + "/pif-lfs", cluster.folder, lfs.name});
  }
  return out;
}

Daemon runner_of(const cluster::Cluster& cluster, const std::string& programs) {
  return {"pif host run", cluster.folder, {programs + "/pif", "host", "run", cluster.folder}};
}

Result<std::optional<pid_t>> holder(const Daemon& daemon) {
  if (!daemon.other_user.empty()) return std::optional<pid_t>{};
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

bool answers(const Daemon& daemon, std::chrono::milliseconds patience) {
  const auto messenger = net::make_real_messenger({});
  if (!messenger) return false;
  proto::Endpoints at;
  at.set_unix_path(daemon.socket);
  const auto peer = (*messenger)->connect(at, net::Route::kUnix);
  if (!peer) return false;
  net::Caller caller(**messenger, 1);
  proto::Hello hello;
  hello.set_program("pif");
  const auto reply = caller.call(*peer, std::move(hello), patience, daemon.name);
  return reply.has_value() || !reply.error().node.empty();  // what it refuses, it has answered
}

Status check_unshared(const cluster::Cluster& cluster) {
  for (const Daemon& daemon : daemons_of(cluster, "")) PIF_TRY(cluster::check_unshared(cluster, daemon.folder));
  return {};
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

namespace {

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

Status signal_stray(const Stray& stray, int signal) {
  if (::syscall(SYS_pidfd_send_signal, stray.process.get(), signal, nullptr, 0) == 0 || errno == ESRCH) return {};
  return fail_errno(errno, fmt::format("cannot stop {} (process {})", stray.name, stray.pid));
}

bool has_ended(const Stray& stray, SteadyClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
  pollfd end = {stray.process.get(), POLLIN, 0};
  return ::poll(&end, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 1;
}

// Those whose locks nobody holds any more, for they were removed.
Status end_strays(const std::vector<Daemon>& daemons, uid_t owner, std::chrono::milliseconds patience, Stopped& out) {
  const std::vector<Stray> strays = strays_of(daemons, owner);
  for (const Stray& stray : strays) {
    add_name(out.asked, stray.name);
    PIF_TRY(signal_stray(stray, SIGTERM));
  }
  const auto deadline = SteadyClock::now() + patience;
  for (const Stray& stray : strays) {
    if (has_ended(stray, deadline)) continue;
    add_name(out.killed, stray.name);
    PIF_TRY(signal_stray(stray, SIGKILL));
    if (!has_ended(stray, SteadyClock::now() + patience))
      return fail(Code::kTimeout, fmt::format("{} (process {}) has not ended after SIGKILL; see what hangs with ps",
                                              stray.name, stray.pid));
  }
  return {};
}

}  // namespace

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
  for (const auto& one : left) (one.is_signalled ? stubborn : unknown).push_back({one.daemon, one.pid});
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
  PIF_TRY(end_strays(daemons, owner, deadline, out));
  return out;
}

Result<Stopped> take_down(const cluster::Cluster& cluster) {
  PIF_TRY_VALUE(const uid_t owner, owner_of(cluster));
  const auto alone =
      lock_out_starters(cluster, kSystemUpDeadline + kSystemDownDeadline);  // no daemon of an `up` under way is stopped
  if (!alone && alone.error().code == Code::kBusy) return fail(alone.error());
  const std::vector<Daemon> daemons = daemons_of(cluster, program_folder());
  std::vector<std::string> ran;
  for (const Daemon& daemon : daemons) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    if (pid) ran.push_back(daemon.name);
  }
  // What would start them again goes first; it takes its daemons with it.
  PIF_TRY_VALUE(Stopped stopped, stop({runner_of(cluster, program_folder())}, owner, 2 * kSystemDownDeadline));
  PIF_TRY_VALUE(const Stopped left, stop(daemons, owner, kSystemDownDeadline));
  for (const std::string& name : ran) add_name(stopped.asked, name);
  for (const std::string& name : left.asked) add_name(stopped.asked, name);
  stopped.killed.insert(stopped.killed.end(), left.killed.begin(), left.killed.end());
  cluster::clear_run_folder(cluster);
  return stopped;
}

}  // namespace pif::cli
