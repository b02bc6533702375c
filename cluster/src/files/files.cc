#include "files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "pif/base/handle.h"
#include "pif/base/write_all.h"

namespace pif::cluster {
namespace {

// Gives the finished file `temporary` its name.
Status publish(const std::string& temporary, const std::string& path, Existing existing) {
  const int result = existing == Existing::kReplace ? std::rename(temporary.c_str(), path.c_str())
                                                    : ::link(temporary.c_str(), path.c_str());
  if (result != 0) return fail_errno(errno, "cannot make " + path);
  if (existing == Existing::kKeep) ::unlink(temporary.c_str());
  return sync_folder(std::filesystem::path(path).parent_path().string());
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot open " + path);
  // It grows with what was read: to clear bytes_max bytes takes as long as the rest of a small program's start.
  constexpr std::size_t kFirst = 16u << 10;
  std::string bytes;
  std::size_t filled = 0;
  while (filled <= bytes_max) {
    bytes.resize(std::min(bytes_max + 1, std::max(kFirst, 2 * filled)));
    const ssize_t got = ::read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, "cannot read " + path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > bytes_max) return fail(Code::kTooLarge, fmt::format("{} has more than {} bytes", path, bytes_max));
  bytes.resize(filled);
  return bytes;
}

Status write_file(const std::string& path, std::string_view bytes, mode_t mode, Existing existing) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot make a file beside " + path);
  Status done = write_all(fd.get(), std::as_bytes(std::span(bytes)), "cannot write " + temporary);
  if (done && (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0))
    done = fail_errno(errno, "cannot sync " + temporary);
  if (done) done = publish(temporary, path, existing);
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Status make_folder(const std::string& path, mode_t mode) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (!parent.empty() && parent != path && ::access(parent.c_str(), F_OK) != 0) PIF_TRY(make_folder(parent, 0755));
  if (::mkdir(path.c_str(), mode) == 0) {
    if (::chmod(path.c_str(), mode) != 0) return fail_errno(errno, "cannot set the mode of " + path);
    return {};
  }
  if (errno != EEXIST) return fail_errno(errno, "cannot make the folder " + path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "cannot look at " + path);
  if (!S_ISDIR(status.st_mode)) return fail(Code::kNotDirectory, path + " is a file; a folder is needed there");
  return {};
}

Status sync_folder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail_errno(errno, "cannot sync the folder " + path);
  return {};
}

}  // namespace pif::cluster
