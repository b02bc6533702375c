#include "worker/brought_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <span>

#include <fmt/format.h>

#include "pif/base/handle.h"
#include "pif/base/write_all.h"

namespace pif::tool {

Status keep_brought_file(const std::string& name, std::string_view content) {
  const char* const folder = std::getenv("TMPDIR");
  if (folder == nullptr) return fail(Code::kInvalid, "a file was brought, and this LFS has no $TMPDIR for workers");
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    return fail(Code::kInvalid, "a file was brought whose name is none");
  const std::string path = fmt::format("{}/{}", folder, name);
  constexpr mode_t kOwnersAlone = 0600;
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnersAlone));
  if (!fd) return fail_errno(errno, "cannot keep a file that was brought, " + path);
  return write_all(fd.get(), std::as_bytes(std::span(content)), "cannot write to " + path);
}

}  // namespace pif::tool
