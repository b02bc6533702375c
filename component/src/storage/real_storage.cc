#include "pif/component/real_storage.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "storage/tree_remover.h"

namespace pif::component {
namespace {

namespace fs = std::filesystem;

// File systems whose syncfs leaves everything durable. Others may only hand data on (to a server, or to another
// process).
constexpr std::array<unsigned long, 4> kSyncsAll = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                                    F2FS_SUPER_MAGIC};
constexpr std::size_t kVectors = 256;  // of one system call; below IOV_MAX, and 4 KiB of stack

// Calls again as long as a signal interrupts.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// The pieces as the kernel takes them, minus what earlier calls have done.
template <typename AnyPiece>
class Vectors {
 public:
  explicit Vectors(std::span<const AnyPiece> pieces) : pieces_(pieces) { skip_empty(); }

  bool done() const { return next_ == pieces_.size(); }
  // The next vectors, at most kVectors.
  std::span<const iovec> gather() {
    std::size_t count = 0;
    for (std::size_t i = next_; i < pieces_.size() && count < kVectors; ++i) {
      const std::size_t skip = i == next_ ? used_ : 0;
      // The kernel's type is the same for both directions.
      vectors_[count++] = {const_cast<std::byte*>(pieces_[i].data + skip), pieces_[i].size - skip};
    }
    return std::span(vectors_.data(), count);
  }
  void advance(std::size_t bytes) {
    used_ += bytes;
    while (next_ < pieces_.size() && used_ >= pieces_[next_].size) used_ -= pieces_[next_++].size;
  }

 private:
  void skip_empty() { advance(0); }

  std::span<const AnyPiece> pieces_;
  std::size_t next_ = 0;  // piece
  std::size_t used_ = 0;  // bytes of it
  std::array<iovec, kVectors> vectors_;
};

class RealFile final : public File {
 public:
  RealFile(UniqueFd fd, std::string path, bool writable)
      : fd_(std::move(fd)), path_(std::move(path)), writable_(writable) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<const Piece> pieces) override {
    // One piece, answered by one call: the path of every random read.
    std::size_t done = 0;
    if (pieces.size() == 1) {
      const ssize_t n = ::pread(fd_.get(), pieces[0].data, pieces[0].size, static_cast<off_t>(offset));
      if (n == static_cast<ssize_t>(pieces[0].size)) return pieces[0].size;
    }
    Vectors<Piece> vectors(pieces);
    while (!vectors.done()) {
      const auto next = vectors.gather();
      const ssize_t n = uninterrupted([&] {
        return ::preadv(fd_.get(), next.data(), static_cast<int>(next.size()), static_cast<off_t>(offset + done));
      });
      if (n < 0) return fail_errno(errno, fmt::format("cannot read {} at byte {}", path_, offset + done));
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
      vectors.advance(static_cast<std::size_t>(n));
    }
    return done;
  }

  Result<std::size_t> read_cached(std::uint64_t offset, std::span<std::byte> into) override {
    const iovec vector{into.data(), into.size()};
    const ssize_t n =
        uninterrupted([&] { return ::preadv2(fd_.get(), &vector, 1, static_cast<off_t>(offset), RWF_NOWAIT); });
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) return 0;
    // A file system that cannot tell (NFS, FUSE) may have to wait at any time; one in memory never has to.
    if (errno == EOPNOTSUPP) return is_in_memory() ? File::read(offset, into) : Result<std::size_t>(0);
    return fail_errno(errno, fmt::format("cannot read {} at byte {}", path_, offset));
  }

  Status write(std::uint64_t offset, std::span<const ConstPiece> pieces) override {
    if (!writable_) return fail(Code::kReadOnly, fmt::format("{} is open for reading only", path_));
    Vectors<ConstPiece> vectors(pieces);
    while (!vectors.done()) {
      const auto next = vectors.gather();
      const ssize_t n = uninterrupted(
          [&] { return ::pwritev(fd_.get(), next.data(), static_cast<int>(next.size()), static_cast<off_t>(offset)); });
      if (n < 0) return fail_errno(errno, fmt::format("cannot write {} at byte {}", path_, offset));
      if (n == 0) return fail(Code::kIo, fmt::format("cannot write {} at byte {}: nothing was taken", path_, offset));
      offset += static_cast<std::size_t>(n);
      vectors.advance(static_cast<std::size_t>(n));
    }
    return {};
  }

  Status sync() override {
    if (sync_failed_) return fail(Code::kIo, fmt::format("{} failed an earlier sync: what it holds is unknown", path_));
    // fdatasync also makes a changed size durable; what it leaves out (times) nobody needs. Not repeated when
    // interrupted or failed: the kernel may have dropped the pages and would then report success.
    if (::fdatasync(fd_.get()) == 0) return {};
    sync_failed_ = true;
    return fail_errno(errno, fmt::format("cannot sync {}", path_));
  }

  Status check_written() override {
    if (sync_failed_) return fail(Code::kIo, fmt::format("{} failed an earlier sync: what it holds is unknown", path_));
    // Reports a failed write-back of this file, as fdatasync does, but does not empty the disk's cache once more.
    constexpr unsigned kAll = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (::sync_file_range(fd_.get(), 0, 0, kAll) == 0) return {};
    if (errno == ENOSYS) return sync();
    sync_failed_ = true;
    return fail_errno(errno, fmt::format("cannot write {}", path_));
  }

  Status resize(std::uint64_t size) override {
    if (!writable_) return fail(Code::kReadOnly, fmt::format("{} is open for reading only", path_));
    if (uninterrupted([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size)); }) == 0) return {};
    return fail_errno(errno, fmt::format("cannot resize {} to {} bytes", path_, size));
  }

  Status punch(std::uint64_t offset, std::uint64_t size) override {
    if (!writable_) return fail(Code::kReadOnly, fmt::format("{} is open for reading only", path_));
    if (size == 0) return {};
    const auto begin = static_cast<off_t>(offset), length = static_cast<off_t>(size);
    if (uninterrupted(
            [&] { return ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, length); }) == 0)
      return {};
    return fail_errno(errno, fmt::format("cannot punch {} bytes at byte {} of {}", size, offset, path_));
  }

  Status reserve(std::uint64_t size) override {
    if (!writable_) return fail(Code::kReadOnly, fmt::format("{} is open for reading only", path_));
    if (size == 0) return {};
    // Not posix_fallocate(), which writes zeros where the file system cannot.
    if (uninterrupted([&] { return ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)); }) == 0)
      return {};
    return fail_errno(errno, fmt::format("cannot reserve {} bytes for {}", size, path_));
  }

  Result<std::uint64_t> next_data(std::uint64_t offset) override {
    // Moves the position of the open file, which nobody uses.
    const off_t found = ::lseek(fd_.get(), static_cast<off_t>(offset), SEEK_DATA);
    if (found >= 0) return static_cast<std::uint64_t>(found);
    if (errno == ENXIO) return size();
    return offset;
  }

  Result<std::uint64_t> size() override {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return fail_errno(errno, fmt::format("cannot examine {}", path_));
    return static_cast<std::uint64_t>(info.st_size);
  }

  void start_writeback(std::uint64_t offset, std::uint64_t size) override {
    (void)::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
  }

  Status clone_from(File& source) override {
    auto* other = dynamic_cast<RealFile*>(&source);
    if (other == nullptr) return fail(Code::kUnsupported, fmt::format("{} is not on the same storage", path_));
    if (::ioctl(fd_.get(), FICLONE, other->fd_.get()) == 0) return {};
    const int error = errno;
    const std::string what = fmt::format("cannot clone {} to {}", other->path_, path_);
    // EINVAL, too, is what file systems without reflinks answer.
    if (error == EINVAL) return fail(Code::kUnsupported, what);
    return fail_errno(error, what);
  }

  Result<bool> has_writers() override {
    if (writable_) return fail(Code::kInvalid, fmt::format("{} is itself open for writing", path_));
    // The kernel grants a read lease only while no open file description can write, mappings included. Somebody who
    // opens for writing in the instant we hold it is announced by a signal; SIGURG is ignored by default, SIGIO kills.
    (void)::fcntl(fd_.get(), F_SETSIG, SIGURG);
    if (::fcntl(fd_.get(), F_SETLEASE, F_RDLCK) == 0) {
      (void)::fcntl(fd_.get(), F_SETLEASE, F_UNLCK);
      return false;
    }
    if (errno == EAGAIN) return true;
    return fail_errno(errno, fmt::format("cannot tell whether somebody may still write {}", path_));
  }

  Result<Handle> share() override {
    const int copy = ::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return fail_errno(errno, fmt::format("cannot pass {} on", path_));
    return Handle{UniqueFd(copy), nullptr};
  }

 private:
  bool is_in_memory() const {
    struct statfs info {};
    return ::fstatfs(fd_.get(), &info) == 0 && static_cast<unsigned long>(info.f_type) == TMPFS_MAGIC;
  }

  const UniqueFd fd_;
  const std::string path_;
  const bool writable_;
  std::atomic<bool> sync_failed_ = false;
};

class RealStorage final : public Storage {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    const int flags = mode == OpenMode::kRead ? O_RDONLY : mode == OpenMode::kWrite ? O_RDWR : O_RDWR | O_CREAT;
    UniqueFd fd(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600); }));
    if (!fd) return fail_errno(errno, fmt::format("cannot open {}", path));
    PIF_TRY(check_regular(fd, path));
    return std::make_unique<RealFile>(std::move(fd), path, mode != OpenMode::kRead);
  }

  Result<std::unique_ptr<File>> adopt(Handle handle) override {
    const int fd = handle.fd.get();
    if (fd < 0) return fail(Code::kInvalid, "no descriptor came with the message");
    const std::string path = fmt::format("the passed descriptor {}", fd);
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) return fail_errno(errno, fmt::format("cannot examine {}", path));
    (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
    PIF_TRY(check_regular(handle.fd, path));
    return std::make_unique<RealFile>(std::move(handle.fd), path, (flags & O_ACCMODE) == O_RDWR);
  }

  Result<Handle> make_nameless(const std::string& folder) override {
    UniqueFd fd(uninterrupted([&] { return ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600); }));
    if (!fd) return fail_errno(errno, fmt::format("cannot make a file in {}", folder));
    return Handle{std::move(fd), nullptr};
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return fail_errno(errno, fmt::format("cannot remove {}", path));
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return fail_errno(errno, fmt::format("cannot rename {} to {}", from, to));
  }

  Status make_folder(const std::string& path) override {
    // Each level by itself: the library's own helper would make parents readable to others.
    for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
      const std::string level = path.substr(0, at);
      if (::mkdir(level.c_str(), 0700) != 0 && errno != EEXIST)
        return fail_errno(errno, fmt::format("cannot make the folder {}", level));
      if (at == std::string::npos) break;
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return fail_errno(errno, fmt::format("cannot examine {}", path));
    if (!S_ISDIR(info.st_mode)) return fail(Code::kNotDirectory, fmt::format("{} is not a folder", path));
    return {};
  }

  Status remove_tree(const std::string& path) override { return remove_tree_at(path); }

  Result<std::vector<std::string>> list(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    if (error) return fail_errno(error.value(), fmt::format("cannot list {}", path));
    std::sort(names.begin(), names.end());
    return names;
  }

  Status sync_folder(const std::string& path) override {
    const UniqueFd fd(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd) return fail_errno(errno, fmt::format("cannot open the folder {}", path));
    if (::fsync(fd.get()) == 0) return {};
    return fail_errno(errno, fmt::format("cannot sync the folder {}", path));
  }

  Status sync_all(const std::string& path) override {
    const UniqueFd fd(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd) return fail_errno(errno, fmt::format("cannot open the folder {}", path));
    struct statfs info {};
    if (::fstatfs(fd.get(), &info) != 0) return fail_errno(errno, fmt::format("cannot examine {}", path));
    if (std::find(kSyncsAll.begin(), kSyncsAll.end(), static_cast<unsigned long>(info.f_type)) == kSyncsAll.end())
      return fail(Code::kUnsupported, fmt::format("the file system of {} may not sync all of it at once", path));
    if (::syncfs(fd.get()) == 0) return {};
    return fail_errno(errno, fmt::format("cannot sync the file system of {}", path));
  }

  Result<Space> space(const std::string& path) override {
    struct statvfs info {};
    if (uninterrupted([&] { return ::statvfs(path.c_str(), &info); }) != 0)
      return fail_errno(errno, fmt::format("cannot tell how full {} is", path));
    return Space{std::uint64_t{info.f_blocks} * info.f_frsize, std::uint64_t{info.f_bavail} * info.f_frsize,
                 info.f_files, info.f_favail};
  }

  Result<std::optional<std::uint64_t>> stored_bytes(const std::string& path) override {
    constexpr std::uint64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's are
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) return static_cast<std::uint64_t>(info.st_blocks) * kBlockBytes;
    if (errno == ENOENT) return std::nullopt;
    return fail_errno(errno, fmt::format("cannot tell how much {} takes", path));
  }

  Status lock(const std::string& path) override {
    const std::string name = path + "/lock";
    UniqueFd fd(uninterrupted([&] { return ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600); }));
    if (!fd) return fail_errno(errno, fmt::format("cannot open {}", name));
    if (uninterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) return fail_errno(errno, fmt::format("cannot lock {}", name));
      return fail(Code::kBusy, fmt::format("{} is in use by {}", path, holder(fd)));
    }
    // The number is for people only, so a failure to write it is no failure to lock.
    const std::string pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd.get(), 0) == 0) (void)!::pwrite(fd.get(), pid.data(), pid.size(), 0);
    const std::lock_guard guard(mutex_);
    locks_.push_back(std::move(fd));
    return {};
  }

 private:
  static Status check_regular(const UniqueFd& fd, const std::string& path) {
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, fmt::format("cannot examine {}", path));
    if (S_ISDIR(info.st_mode)) return fail(Code::kIsDirectory, fmt::format("{} is a folder", path));
    if (!S_ISREG(info.st_mode)) return fail(Code::kInvalid, fmt::format("{} is not a regular file", path));
    return {};
  }

  static std::string holder(const UniqueFd& fd) {
    std::array<char, 16> text{};
    const ssize_t n = ::pread(fd.get(), text.data(), text.size(), 0);
    const std::string_view pid(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    const std::string_view digits = pid.substr(0, pid.find('\n'));
    return digits.empty() ? "another process" : fmt::format("process {}", digits);
  }

  std::mutex mutex_;
  std::vector<UniqueFd> locks_;  // guarded by mutex_; held until the storage goes
};

}  // namespace

std::unique_ptr<Storage> make_real_storage() { return std::make_unique<RealStorage>(); }

}  // namespace pif::component
