#include "process/mount_point.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "pif/base/handle.h"
#include "pif/machine/mounts.h"

namespace pif::mount {
namespace {

constexpr int kEndPatienceMs = 60'000;

bool is_ours(const std::string& folder) {
  bool ours = false;  // the last one that was mounted there is seen
  for (const machine::Mounted& one : machine::all_mounted())
    if (one.at == folder) ours = one.type == "fuse.pif-mount";
  return ours;
}

// Without asking the mount itself, which may be dead.
std::string absolute(const std::string& folder) {
  std::error_code none;
  const std::filesystem::path path = std::filesystem::absolute(folder, none).lexically_normal();
  const auto parent =
      std::filesystem::canonical(path.has_filename() ? path.parent_path() : path.parent_path().parent_path(), none);
  if (none) return path.string();
  const auto name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return name.empty() ? "/" : (parent / name).string();
}

Status run_fusermount(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ); error != 0)
    return fail_errno(error, "cannot run fusermount3 (Debian: package fuse3)");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Code::kBusy, fmt::format("{} could not be unmounted: does a program use it?", arguments.back()));
}

Status take_away(const std::string& folder, bool now) {
  if (::geteuid() != 0)
    return run_fusermount(now ? std::vector<std::string>{"fusermount3", "-u", "-q", "-z", "--", folder}
                              : std::vector<std::string>{"fusermount3", "-u", "-q", "--", folder});
  if (::umount2(folder.c_str(), UMOUNT_NOFOLLOW | (now ? MNT_DETACH : 0)) == 0) return {};
  if (errno == EBUSY) return fail(Code::kBusy, folder + " is in use: a program has a file of it open, or stands in it");
  return fail_errno(errno, "cannot unmount " + folder);
}

// The process whose mount that is; none if it is dead.
UniqueFd process_of(const std::string& folder) {
  const UniqueFd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int process = 0;
  if (!root || ::ioctl(root.get(), kAskProcess, &process) != 0 || process <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

// Whether it is one of ours whose process has ended. For a second the kernel still knows the attributes: it is opened.
bool is_dead(const std::string& folder) {
  if (!is_ours(folder)) return false;
  const UniqueFd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !root && (errno == ENOTCONN || errno == ECONNABORTED);
}

}  // namespace

Result<std::string> prepare_mount_point(const std::string& folder) {
  const std::string path = absolute(folder);
  struct stat status;
  if (is_dead(path)) PIF_TRY(take_away(path, true));
  if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "cannot mount on " + path);
  if (!S_ISDIR(status.st_mode)) return fail(Code::kNotDirectory, path + " is no folder: nothing can be mounted on it");
  if (is_ours(path)) return fail(Code::kBusy, path + " has a file system mounted already: `pif umount` it first");
  return path;
}

Status unmount(const std::string& folder) {
  const std::string path = absolute(folder);
  if (!is_ours(path)) return fail(Code::kInvalid, "no file system of ours is mounted on " + path);
  const UniqueFd process = process_of(path);
  PIF_TRY(take_away(path, false));
  if (!process) return {};
  pollfd end{process.get(), POLLIN, 0};
  int ended = 0;
  while ((ended = ::poll(&end, 1, kEndPatienceMs)) < 0 && errno == EINTR) {
  }
  if (ended > 0) return {};
  return fail(Code::kTimeout, path + " is unmounted, but its process has not ended: what was written may not be sent");
}

}  // namespace pif::mount
