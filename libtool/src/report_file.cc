#include "report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace pif::tool {
namespace {

constexpr mode_t kReportMode = 0666;  // less the umask, like any output of a program

Status write_all(int fd, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "cannot write to " + name);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// A pipe or a terminal has nothing older in it.
Status empty(int fd, const std::string& name) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return fail_errno(errno, "cannot look at " + name);
  if (S_ISREG(about.st_mode) && ::ftruncate(fd, 0) != 0) return fail_errno(errno, "cannot write to " + name);
  return {};
}

}  // namespace

Status print(const std::string& text) { return write_all(STDOUT_FILENO, text, "standard output"); }

Result<ReportFile> ReportFile::open(const std::string& path) {
  if (path.empty() || path == "-") return ReportFile(path, UniqueFd());
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kReportMode));
  if (!fd) return fail_errno(errno, "cannot write the report to " + path);
  return ReportFile(path, std::move(fd));
}

Status ReportFile::write(const std::string& report) {
  if (path_.empty()) return {};
  if (path_ == "-") return print(report);
  PIF_TRY(empty(fd_.get(), path_));
  PIF_TRY(write_all(fd_.get(), report, path_));
  const int fd = fd_.release();
  if (::close(fd) != 0) return fail_errno(errno, "cannot write to " + path_);  // NFS tells only now
  return {};
}

}  // namespace pif::tool
