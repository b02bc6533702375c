#include "transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace pif::cli {
namespace {

bool is_regular(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

// A regular file that is written at offsets by several threads. Takes O_APPEND (`>> file`) away meanwhile, which would
// make every write go to the end, in any order.
class Stand {
 public:
  [[nodiscard]] static Result<Stand> take(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) return fail_errno(errno, "cannot write to this descriptor");
    const bool appends = (flags & O_APPEND) != 0;
    const off_t offset = ::lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    if (offset < 0) return fail_errno(errno, "cannot write to this descriptor");
    if (appends && ::fcntl(fd, F_SETFL, flags & ~O_APPEND) != 0) return fail_errno(errno, "cannot write to this descriptor");
    return Stand(fd, flags, appends, offset);
  }
  Stand(Stand&& other) noexcept : fd_(std::exchange(other.fd_, -1)), flags_(other.flags_), appends_(other.appends_), offset_(other.offset_) {}
  Stand& operator=(Stand&&) = delete;
  ~Stand() {
    if (fd_ >= 0 && appends_) ::fcntl(fd_, F_SETFL, flags_);
  }
  std::uint64_t offset() const { return static_cast<std::uint64_t>(offset_); }
  Status step(std::uint64_t bytes) {
    if (::lseek(fd_, offset_ + static_cast<off_t>(bytes), SEEK_SET) < 0) return fail_errno(errno, "cannot write to this descriptor");
    return {};
  }

 private:
  Stand(int fd, int flags, bool appends, off_t offset) : fd_(fd), flags_(flags), appends_(appends), offset_(offset) {}
  int fd_;
  int flags_;
  bool appends_;
  off_t offset_;
};

BulkOptions options_with(Progress& progress) {
  BulkOptions options;
  options.progress = [&progress](const BulkCounts& done, std::uint64_t) { progress.set(done.bytes); };
  return options;
}

}  // namespace

Result<BulkCounts> fill(File& file, int fd, Progress& progress, const std::atomic<bool>* cancel) {
  BulkOptions options = options_with(progress);
  options.cancel = cancel;
  if (is_regular(fd)) {
    const off_t offset = ::lseek(fd, 0, SEEK_CUR);
    if (offset < 0) return fail_errno(errno, "cannot read this descriptor");
    options.local_offset = static_cast<std::uint64_t>(offset);
  }
  return import_stream(file, fd, options);
}

Result<BulkCounts> drain(File& file, Range range, int fd, Progress& progress) {
  BulkOptions options = options_with(progress);
  options.records = range;
  if (!is_regular(fd)) return export_stream(file, fd, options);
  PIF_TRY_VALUE(Stand stand, Stand::take(fd));
  options.local_offset = stand.offset();
  PIF_TRY_VALUE(const BulkCounts counts, export_stream(file, fd, options));
  PIF_TRY(stand.step(counts.bytes));
  return counts;
}

}  // namespace pif::cli
