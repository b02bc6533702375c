#include "storage/tree_remover.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/handle.h"

namespace pif::component {
namespace {

constexpr unsigned kDepthMax = 60;  // of folders that are open at once

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int parent, const char* name) {
  UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Folder folder(fd ? ::fdopendir(fd.get()) : nullptr);
  if (folder) (void)fd.release();
  return folder;
}

class TreeRemover {
 public:
  TreeRemover(const std::string& path, int top) : path_(path), top_(top) {}

  // Until it is empty: folders that lay too deep come up to the top meanwhile.
  Status empty(DIR* folder, unsigned depth) {
    PIF_ASSERT(folder != nullptr && depth <= kDepthMax, depth);
    for (bool any = true; any;) {
      any = false;
      ::rewinddir(folder);
      while (const dirent* entry = ::readdir(folder)) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        any = true;
        PIF_TRY(remove(::dirfd(folder), entry->d_name, depth));
      }
    }
    return {};
  }

 private:
  Status remove(int parent, const char* name, unsigned depth) {
    if (::unlinkat(parent, name, 0) == 0) return {};
    if (errno != EISDIR && errno != EPERM) return wrong();
    if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return {};
    if (errno != ENOTEMPTY && errno != EEXIST) return wrong();
    if (depth >= kDepthMax) return bring_up(parent, name);
    const Folder inner = open_folder(parent, name);
    if (!inner) return wrong();
    PIF_TRY(empty(inner.get(), depth + 1));
    return ::unlinkat(parent, name, AT_REMOVEDIR) == 0 ? Status() : wrong();
  }
  Status bring_up(int parent, const char* name) {
    for (;;) {
      const std::string there = fmt::format("pif-deep-{}", brought_up_++);
      if (::renameat(parent, name, top_, there.c_str()) == 0) return {};
      if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return wrong();  // something has that name
    }
  }
  Status wrong() const { return fail_errno(errno, fmt::format("cannot remove {}", path_)); }

  const std::string& path_;
  int top_;
  std::uint64_t brought_up_ = 0;
};

}  // namespace

Status remove_tree_at(const std::string& path) {
  const auto wrong = [&] { return fail_errno(errno, fmt::format("cannot remove {}", path)); };
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return wrong();
  const Folder top = open_folder(AT_FDCWD, path.c_str());
  if (!top) return wrong();
  PIF_TRY(TreeRemover(path, ::dirfd(top.get())).empty(top.get(), 0));
  return ::rmdir(path.c_str()) == 0 ? Status() : wrong();
}

}  // namespace pif::component
