// What `pif doctor` looks at on a machine, whatever file system is meant.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string_view>

#include <fmt/format.h>

#include "doctor/doctor.h"
#include "pif/base/capability.h"
#include "pif/base/handle.h"
#include "pif/base/version.h"
#include "pif/machine/mounts.h"
#include "text/text.h"

extern char** environ;

namespace pif::cli {
namespace {

constexpr rlim_t kFilesWanted = 65536;  // an LFS takes so many if it may
constexpr rlim_t kFilesMin = 1024;
constexpr std::int64_t kReleaseYear = 1735689600;  // 2025-01-01: no clock can be right before it
constexpr std::size_t kVersionTextMax = 256;
constexpr std::array<std::string_view, 17> kPrograms = {
    "pif-server", "pif-lfs",      "pif-exec",       "pif-backup",    "pif-copy",     "pif-count",
    "pif-cmp",    "pif-compress", "pif-decompress", "pif-digest",    "pif-map",      "pif-restore",
    "pif-search", "pif-sort",     "pif-summarize",  "pif-transpose", "pif-calibrate"};
constexpr auto kAnswerDeadline = std::chrono::seconds(3);  // to say a version

// What comes until the end, as much as is wanted of it, or the deadline; whether the end or enough came.
bool read_until(int fd, std::size_t wanted, std::chrono::steady_clock::time_point deadline, std::string& text) {
  while (text.size() < wanted) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd waiting = {fd, POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
    std::array<char, kVersionTextMax> piece{};
    const ssize_t got = ::read(fd, piece.data(), std::min(piece.size(), wanted - text.size()));
    if (got <= 0) return got == 0;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return true;
}

// The first line that a program prints; empty if it cannot be started, or has nothing to say in time.
std::string first_line_of(const std::string& program, const char* option) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  UniqueFd reading(ends[0]), writing(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string path = program, word = option;
  std::array<char*, 3> argv = {path.data(), word.data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};
  writing.reset();
  std::string text;
  const bool ended =
      read_until(reading.get(), kVersionTextMax, std::chrono::steady_clock::now() + kAnswerDeadline, text);
  reading.reset();
  if (!ended) ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return text.substr(0, text.find('\n'));
}

void check_program(Doctor& doctor, const std::string& path, std::string_view name) {
  if (::access(path.c_str(), X_OK) != 0)
    return doctor.wrong("programs", fmt::format("{} is not there, or not executable", path),
                        name == "pif-exec" ? "without it no tool can start workers: install it beside pif-lfs"
                                           : "install all programs of a release into one folder");
  if (name == "pif-exec") return;  // it has no options
  const std::string line = first_line_of(path, "--version");
  const std::string found = line.substr(line.rfind(' ') + 1);
  if (found != version())
    doctor.wrong("programs", fmt::format("{} is of version \"{}\", this program of {}", path, found, version()),
                 "install all programs of one release, then restart: pif down, pif up");
}

#ifdef SYS_landlock_create_ruleset
// Version of the kernel's Landlock interface; below 1: none.
long landlock_version() { return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1u); }
#else
long landlock_version() { return 0; }
#endif

}  // namespace

void check_programs(Doctor& doctor, const std::string& programs) {
  const std::size_t before = doctor.findings().size();
  for (const std::string_view name : kPrograms) check_program(doctor, fmt::format("{}/{}", programs, name), name);
  if (doctor.findings().size() == before)
    doctor.ok("programs", fmt::format("server, LFS, pif-exec and tools of version {} in {}", version(), programs));
}

void check_limits(Doctor& doctor) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return doctor.warn("limits", "cannot be asked for", "look at: ulimit -Hn");
  const std::string text = fmt::format("a process may have {} files open (hard limit)", limit.rlim_max);
  const std::string todo = "raise it: ulimit -Hn 65536 as root, or LimitNOFILE= of the service";
  if (limit.rlim_max < kFilesMin) return doctor.wrong("limits", text + ": too few for an LFS and its clients", todo);
  if (limit.rlim_max < kFilesWanted)
    return doctor.warn("limits", fmt::format("{}; an LFS takes up to {}", text, kFilesWanted), todo);
  doctor.ok("limits", text);
}

void check_kernel(Doctor& doctor) {
  utsname name{};
  ::uname(&name);
  const long landlock = landlock_version();
  if (landlock < 1)
    return doctor.warn(
        "kernel",
        fmt::format("Linux {} without Landlock: workers can be confined to a user, not to folders", name.release),
        "boot a kernel of 5.13 or later with lsm=landlock,... if users run tools of their own");
  doctor.ok("kernel", fmt::format("Linux {} with Landlock {}", name.release, landlock));
}

void check_mounts(Doctor& doctor) {
  for (const machine::Mounted& mounted : machine::all_mounted()) {
    struct stat root {};
    if (mounted.type != "fuse.pif-mount" || ::stat(mounted.at.c_str(), &root) == 0 || errno != ENOTCONN) continue;
    doctor.wrong("mounts", fmt::format("the process of the mount at {} is gone", mounted.at),
                 fmt::format("pif mount {} {}; or pif umount {}", mounted.source, mounted.at, mounted.at));
  }
}

void check_clock(Doctor& doctor, const std::string& folder) {
  const std::int64_t now = std::time(nullptr);
  const std::string todo = "set the clock, and keep it with NTP: credentials and capabilities expire by it";
  if (now < kReleaseYear) return doctor.wrong("clock", "it is set before this release was made", todo);
  struct stat written {};
  const std::string newest = folder + "/server/directory/data.mdb";
  if (!folder.empty() && ::stat(newest.c_str(), &written) == 0 && written.st_mtime > now + kClockSkewSeconds)
    return doctor.wrong("clock", fmt::format("{} was last written {} s from now", newest, written.st_mtime - now),
                        todo);
  doctor.ok("clock", iso_date(now * 1'000'000'000));
}

}  // namespace pif::cli
