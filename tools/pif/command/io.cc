#include "command/io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

namespace pif::cli {
namespace {

constexpr int kNamesTried = 100;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

tl::unexpected<Error> no_name_free(const std::string& target) {
  return fail(Code::kExists,
              fmt::format("too many unfinished files beside {}; remove those called .pif-{}.*", target, ::getpid()));
}

}  // namespace

// Our process id and a count. The target's own may be as long as a name
// can be, so it is no part.
std::string temporary_name() {
  static std::atomic<std::uint64_t> count{0};
  return fmt::format(".pif-{}.{}", ::getpid(), count++);
}

std::int64_t modified_ns_of(const struct stat& about) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t ns = 0;
  if (__builtin_mul_overflow(std::int64_t{about.st_mtim.tv_sec}, kSecond, &ns) ||
      __builtin_add_overflow(ns, std::int64_t{about.st_mtim.tv_nsec}, &ns))
    return about.st_mtim.tv_sec < 0 ? INT64_MIN : INT64_MAX;  // before 1677, or after 2262
  return ns;
}

Result<std::size_t> read_full(int fd, std::span<std::byte> out, const std::string& name) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::read(fd, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "cannot read " + name);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

NewFile::NewFile(UniqueFd folder, std::string target, UniqueFd fd, std::string temporary)
    : folder_(std::move(folder)),
      target_(std::move(target)),
      name_(target_.substr(target_.rfind('/') + 1)),
      fd_(std::move(fd)),
      temporary_(std::move(temporary)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      target_(std::move(other.target_)),
      name_(std::move(other.name_)),
      fd_(std::move(other.fd_)),
      temporary_(std::exchange(other.temporary_, {})) {}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

Result<NewFile> NewFile::create(const std::string& target, std::uint32_t mode) {
  UniqueFd folder(::open(folder_of(target).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail_errno(errno, "cannot make a file in " + folder_of(target));
  return create_in(std::move(folder), target, mode);
}

Result<NewFile> NewFile::create_in(UniqueFd folder, const std::string& target, std::uint32_t mode) {
  UniqueFd nameless(::openat(folder.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (nameless) return NewFile(std::move(folder), target, std::move(nameless), {});
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    return fail_errno(errno, "cannot make a file in " + folder_of(target));
  for (int attempt = 0; attempt < kNamesTried; ++attempt) {
    std::string name = temporary_name();
    UniqueFd fd(::openat(folder.get(), name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode));
    if (fd) return NewFile(std::move(folder), target, std::move(fd), std::move(name));
    if (errno != EEXIST) return fail_errno(errno, "cannot make a file in " + folder_of(target));
  }
  return no_name_free(target);
}

// linkat() never replaces, so a nameless file gets a temporary name first; rename() then replaces atomically.
Status NewFile::link_beside() {
  for (int attempt = 0; attempt < kNamesTried; ++attempt) {
    std::string name = temporary_name();
    if (link_as(name)) {
      temporary_ = std::move(name);
      return {};
    }
    if (errno != EEXIST) return fail_errno(errno, "cannot name the new file " + target_);
  }
  return no_name_free(target_);
}

// False: something has the name already, or errno says why.
bool NewFile::link_as(const std::string& name) const {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_.get());
  return ::linkat(AT_FDCWD, self.c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

Status NewFile::set_modified(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t seconds = ns / kSecond - (ns % kSecond < 0 ? 1 : 0);
  timespec times[2] = {{0, UTIME_OMIT}, {seconds, ns - seconds * kSecond}};
  if (::futimens(fd_.get(), times) == 0) return {};
  return fail_errno(errno, "cannot set the time of modification of " + target_);
}

Status NewFile::publish(bool keep_existing) {
  if (temporary_.empty()) {
    if (link_as(name_)) return {};
    PIF_TRY(link_beside());
  }
  const unsigned flags = keep_existing ? RENAME_NOREPLACE : 0;
  if (::renameat2(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str(), flags) != 0) {
    if (errno == EEXIST) return fail(Code::kExists, target_ + " exists already; leave out --no-clobber to replace it");
    return fail_errno(errno, "cannot put the new file in the place of " + target_);
  }
  temporary_.clear();
  return {};
}

}  // namespace pif::cli
