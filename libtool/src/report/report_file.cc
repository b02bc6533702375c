#include "report/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "pif/base/print.h"
#include "pif/base/write_all.h"
#include "pif/tool/tool_main.h"

namespace pif::tool {
namespace {

constexpr mode_t kReportMode = 0666;  // less the umask, like any output of a program

Status write_text(int fd, const std::string& text, const std::string& name) {
  return write_all(fd, std::as_bytes(std::span(text)), "cannot write to " + name);
}

// A pipe or a terminal has nothing older in it.
Status empty(int fd, const std::string& name) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return fail_errno(errno, "cannot look at " + name);
  if (S_ISREG(about.st_mode) && ::ftruncate(fd, 0) != 0) return fail_errno(errno, "cannot write to " + name);
  return {};
}

}  // namespace

Status print(const std::string& text) {
  return write_text(STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1 ? visible(text) : text, "standard output");
}

Result<ReportFile> ReportFile::open(const std::string& path) {
  if (path.empty() || path == "-") return ReportFile(path, UniqueFd(), false);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
  UniqueFd fd(::open(path.c_str(), kFlags | O_EXCL, kReportMode));
  const bool is_new = static_cast<bool>(fd);
  if (!is_new && errno == EEXIST) fd = UniqueFd(::open(path.c_str(), kFlags, kReportMode));
  if (!fd) return fail_errno(errno, "cannot write to " + path);
  return ReportFile(path, std::move(fd), is_new);
}

ReportFile::~ReportFile() {
  if (is_new_ && fd_) ::unlink(path_.c_str());
}

Status ReportFile::write(const std::string& report) {
  if (path_.empty()) return {};
  if (path_ == "-") return print(report);
  PIF_TRY(empty(fd_.get(), path_));
  PIF_TRY(write_text(fd_.get(), report, path_));
  const int fd = fd_.release();
  if (::close(fd) != 0) return fail_errno(errno, "cannot write to " + path_);  // NFS tells only now
  return {};
}

}  // namespace pif::tool
