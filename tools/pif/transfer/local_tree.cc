#include "transfer/local_tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "pif/base/assert.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

std::string_view without_slashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Of the path without its last name.
std::string above(std::string_view path) {
  const std::string_view rest = without_slashes(path);
  return std::string(rest.substr(0, rest.rfind('/') + 1));
}

// Links are no folders here.
tl::unexpected<Error> no_folder(int error, std::string_view path) {
  const bool is_other = error == ENOTDIR || error == ELOOP;
  if (is_other) return fail(Code::kNotDirectory, std::string(path) + " is no folder; get goes through no link");
  return fail_errno(error, "cannot look into the folder " + std::string(path));
}

}  // namespace

Result<LocalTree> LocalTree::open(const std::string& root) {
  UniqueFd fd(::open(root.empty() ? "." : root.c_str(), kFolder));
  if (!fd) return fail_errno(errno, "cannot look into the folder " + root);
  return LocalTree(root, std::move(fd));
}

// The folder at `path`.
Result<UniqueFd> LocalTree::folder(const std::string& path) const {
  PIF_ASSERT(path.starts_with(root_), path.size(), root_.size());
  UniqueFd at(::openat(fd_.get(), ".", kFolder));
  if (!at) return no_folder(errno, root_);
  for (std::size_t begin = root_.size(); begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) {
      at = UniqueFd(::openat(at.get(), path.substr(begin, end - begin).c_str(), kFolder | O_NOFOLLOW));
      if (!at) return no_folder(errno, std::string_view(path).substr(0, end));
    }
    begin = end + 1;
  }
  return at;
}

Result<bool> LocalTree::make_folder(const std::string& path, std::uint32_t mode) const {
  if (without_slashes(path).size() <= root_.size()) return false;  // the root itself
  const std::string name = base_name(path);
  PIF_TRY_VALUE(const UniqueFd parent, folder(above(path)));
  if (::mkdirat(parent.get(), name.c_str(), mode) == 0) return true;
  if (errno != EEXIST) return fail_errno(errno, "cannot make the folder " + path);
  PIF_TRY(folder(path));
  return false;
}

Status LocalTree::close_folder(const std::string& path, std::uint32_t mode) const {
  PIF_TRY_VALUE(const UniqueFd found, folder(path));
  const UniqueFd readable(::openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat about {};  // the umask has been at it
  const mode_t kept = mode | ~static_cast<mode_t>(S_IRWXU);
  if (readable && ::fstat(readable.get(), &about) == 0 && ::fchmod(readable.get(), about.st_mode & kept) == 0)
    return {};
  return fail_errno(errno, "cannot set the mode of " + path);
}

Result<NewFile> LocalTree::new_file(const std::string& path, std::uint32_t mode) const {
  PIF_TRY_VALUE(UniqueFd parent, folder(above(path)));
  return NewFile::create_in(std::move(parent), path, mode);
}

namespace {

int make_at(int folder, const std::string& name, const Entry& entry) {
  const auto mode = static_cast<mode_t>(entry.mode & 0777);
  switch (entry.kind) {
    case EntryKind::kLink: return ::symlinkat(entry.target.c_str(), folder, name.c_str());
    case EntryKind::kFifo: return ::mknodat(folder, name.c_str(), S_IFIFO | mode, 0);
    case EntryKind::kSocket: return ::mknodat(folder, name.c_str(), S_IFSOCK | mode, 0);
    case EntryKind::kCharacterDevice: return ::mknodat(folder, name.c_str(), S_IFCHR | mode, entry.device);
    default: return ::mknodat(folder, name.c_str(), S_IFBLK | mode, entry.device);
  }
}

}  // namespace

// rename() replaces in one step, and never a folder by something else.
Status LocalTree::make_other(const std::string& path, const Entry& entry, bool keep_existing) const {
  PIF_ASSERT(entry.kind >= EntryKind::kLink, static_cast<int>(entry.kind));
  PIF_TRY_VALUE(const UniqueFd parent, folder(above(path)));
  const std::string name = base_name(path);
  if (make_at(parent.get(), name, entry) == 0) return {};
  if (errno == EEXIST && keep_existing) return fail(Code::kExists, path + " exists already");
  if (errno != EEXIST) return fail_errno(errno, "cannot make " + path);
  const std::string temporary = temporary_name();
  if (make_at(parent.get(), temporary, entry) != 0) return fail_errno(errno, "cannot make " + path);
  if (::renameat(parent.get(), temporary.c_str(), parent.get(), name.c_str()) == 0) return {};
  const int error = errno;
  ::unlinkat(parent.get(), temporary.c_str(), 0);
  return fail_errno(error, "cannot replace " + path);
}

Result<UniqueFd> LocalTree::special_file(const std::string& path) const {
  PIF_TRY_VALUE(const UniqueFd parent, folder(above(path)));
  const std::string name = base_name(path);
  struct stat about {};
  if (::fstatat(parent.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return UniqueFd();
  if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || S_ISLNK(about.st_mode)) return UniqueFd();
  UniqueFd fd(::openat(parent.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot write to " + path);
  return fd;
}

}  // namespace pif::cli
