#include "bulk/local_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pif::client {
namespace {

constexpr int kIdleMs = 200;
constexpr int kPipeBytes =
    1 << 20;  // as much as anybody may ask for: each time one is full, two processes change places

// A pipe that cannot be widened stays as it is.
void widen_pipe(int fd) {
  if (::fcntl(fd, F_GETPIPE_SZ) < kPipeBytes) (void)::fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
}

// The library knows its local file by nothing but a descriptor.
std::string doing(std::string_view what, int fd) {
  const std::string_view name = fd == STDIN_FILENO    ? "standard input"
                                : fd == STDOUT_FILENO ? "standard output"
                                                      : "the local file";
  return std::string(what).append(" ").append(name);
}

}  // namespace

Result<LocalFile> LocalFile::of(int fd, const BulkOptions& options, bool writing) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, doing("cannot use", fd));
  if (writing && S_ISFIFO(info.st_mode)) widen_pipe(fd);
  LocalFile file;
  file.fd_ = fd;
  file.cancel_ = options.cancel;
  const std::uint64_t offset = options.local_offset;
  const off_t here = S_ISREG(info.st_mode) ? ::lseek(fd, 0, SEEK_CUR) : -1;
  const bool appending = writing && (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  // Files of /proc say that they are empty: those are read as a stream.
  if (here >= 0 && !appending && (writing || size > 0)) {
    file.seekable_ = true;
    file.base_ = static_cast<std::uint64_t>(here) + offset;
    file.size_ = size > file.base_ ? size - file.base_ : 0;
  } else if (offset != 0) {
    return fail(Code::kInvalid, "an offset needs a regular local file");
  }
  return file;
}

Status LocalFile::again_or(std::string_view what) const {
  if (errno != EINTR) return fail_errno(errno, doing(what, fd_));
  return check_cancel();
}

Status LocalFile::check_cancel() const {
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return fail(Code::kCancelled, "stopped");
  return {};
}

// A signal may come to another thread, or just before this one waits: so whoever cancels is asked now and then.
Status LocalFile::await_input() const {
  for (;;) {
    pollfd input{fd_, POLLIN, 0};
    const int ready = ::poll(&input, 1, kIdleMs);
    if (ready > 0) return {};
    if (ready < 0) PIF_TRY(again_or("cannot wait for"));
    PIF_TRY(check_cancel());
    if (ready == 0 && idle_) idle_();
  }
}

Result<std::size_t> LocalFile::read(std::uint64_t position, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    if ((idle_ || cancel_ != nullptr) && !seekable_) PIF_TRY(await_input());
    const auto at = static_cast<off_t>(base_ + position + done);
    const ssize_t n = seekable_ ? ::pread(fd_, out.data() + done, out.size() - done, at)
                                : ::read(fd_, out.data() + done, out.size() - done);
    if (n < 0) PIF_TRY(again_or("cannot read"));
    if (n == 0) break;
    done += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return done;
}

Status LocalFile::write(std::uint64_t position, std::span<const std::byte> in) const {
  std::size_t done = 0;
  while (done < in.size()) {
    const auto at = static_cast<off_t>(base_ + position + done);
    const ssize_t n = seekable_ ? ::pwrite(fd_, in.data() + done, in.size() - done, at)
                                : ::write(fd_, in.data() + done, in.size() - done);
    if (n < 0) PIF_TRY(again_or("cannot write"));
    done += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return {};
}

void LocalFile::set_position(std::uint64_t position) const {
  if (seekable_) static_cast<void>(::lseek(fd_, static_cast<off_t>(base_ + position), SEEK_SET));
}

Status Progress::check() const {
  if (cancelled()) return fail(Code::kCancelled, "stopped");
  return {};
}

Status Progress::report(const BulkCounts& done) const {
  PIF_TRY(check());
  if (options_.progress) options_.progress(done, bytes_total_);
  return {};
}

}  // namespace pif::client
