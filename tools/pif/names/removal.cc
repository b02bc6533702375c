#include "names/removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "pif/base/handle.h"
#include "text/expand.h"

namespace pif::cli {
namespace {

constexpr std::size_t kLeftKept = 1000;

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};

Result<std::vector<std::string>> names_in(int folder, const std::string& path) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return fail_errno(errno, "cannot list " + path);
  const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(copy));
  if (!listing) {
    ::close(copy);
    return fail_errno(errno, "cannot list " + path);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return fail_errno(errno, "cannot list " + path);
  return names;
}

// One run: everything by descriptors of folders, so that nobody can put a link in the way.
class Remover {
 public:
  explicit Remover(Removal& removal) : removal_(removal) {}

  // Whether it is gone.
  Result<bool> remove(int parent, const std::string& name, const std::string& path, const KnownFolder& known) {
    UniqueFd folder(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno == ENOENT) return true;
    if (!folder && (errno == ELOOP || errno == ENOTDIR)) return leave(path);
    if (!folder) return fail_errno(errno, "cannot look into " + path);
    PIF_TRY_VALUE(const auto names, names_in(folder.get(), path));
    bool all = true;
    for (const std::string& inside : names) {
      if (inside == known.last) continue;
      PIF_TRY_VALUE(const bool gone, remove_entry(folder.get(), inside, path + "/" + inside, known));
      all = all && gone;
    }
    if (!known.last.empty()) PIF_TRY(unlink(folder.get(), known.last, path + "/" + known.last));
    if (!all) return false;
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    if (errno == EBUSY || errno == EACCES || errno == EPERM)
      return leave(path);  // a disk is mounted there, or it is in another's folder
    return fail_errno(errno, "cannot remove " + path);
  }

 private:
  Result<bool> remove_entry(int folder, const std::string& name, const std::string& path, const KnownFolder& known) {
    struct stat about {};
    if (::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return true;
      return fail_errno(errno, "cannot look at " + path);
    }
    if (S_ISDIR(about.st_mode)) {
      for (const auto& inside : known.folders) {
        if (matches(inside.name, name, Dots::kShow)) return remove(folder, name, path, inside.known);
      }
      return leave(path);
    }
    const bool is_known = std::any_of(known.files.begin(), known.files.end(),
                                      [&](const auto& pattern) { return matches(pattern, name, Dots::kShow); });
    if (!is_known || !(S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode))) return leave(path);
    PIF_TRY(unlink(folder, name, path));
    return true;
  }

  Status unlink(int folder, const std::string& name, const std::string& path) {
    if (::unlinkat(folder, name.c_str(), 0) == 0)
      ++removal_.files;
    else if (errno != ENOENT)
      return fail_errno(errno, "cannot remove " + path);
    return {};
  }

  bool leave(const std::string& path) {
    if (removal_.left.size() < kLeftKept) removal_.left.push_back(path);
    return false;
  }

  Removal& removal_;
};

}  // namespace

Status remove_known(const std::string& folder, const KnownFolder& known, Removal& removal) {
  PIF_TRY(Remover(removal).remove(AT_FDCWD, folder, folder, known));
  return {};
}

}  // namespace pif::cli
