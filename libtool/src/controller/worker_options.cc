#include "controller/worker_options.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/handle.h"
#include "pif/base/path.h"

namespace pif::tool {
namespace {

constexpr std::size_t kFolderBytesMax = 4095;  // PATH_MAX, and an LFS has the same limit

// "a/.." stays: `a` may be a link.
Result<std::string> absolute(const std::string& folder) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(folder, failed);
  if (failed) return fail(code_from_errno(failed.value()), fmt::format("cannot find the folder {}", folder));
  return path.string();
}

Result<std::string> read_whole(const std::string& path, std::size_t bytes_max) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat about {};
  if (!fd || ::fstat(fd.get(), &about) != 0) return fail_errno(errno, "cannot read --file " + path);
  if (S_ISDIR(about.st_mode)) return fail(Code::kIsDirectory, fmt::format("--file {} is a folder: name a file", path));
  std::string content;
  while (content.size() <= bytes_max) {
    const std::size_t got = content.size();
    content.resize(std::min(got + (1u << 20), bytes_max + 1));
    const ssize_t more = ::read(fd.get(), content.data() + got, content.size() - got);
    const int error = errno;
    content.resize(got + static_cast<std::size_t>(std::max<ssize_t>(more, 0)));
    if (more == 0) return content;
    if (more < 0 && error != EINTR) return fail_errno(error, "cannot read --file " + path);
  }
  return fail(Code::kTooLarge, fmt::format("--file {}: files of over {} MiB together cannot be brought to workers: put "
                                           "what is longer into a folder, and give that with --read",
                                           path, kBroughtBytesMax >> 20));
}

Status add_folders(const std::vector<std::string>& folders, bool may_write, std::vector<FolderGrant>& grants) {
  for (const std::string& folder : folders) {
    PIF_TRY_VALUE(std::string path, absolute(folder));
    grants.push_back({std::move(path), may_write});
  }
  return {};
}

Status add_files(const std::vector<std::string>& paths, std::vector<BroughtFile>& files) {
  std::set<std::string> names;
  std::size_t room = kBroughtBytesMax;
  for (const std::string& path : paths) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (name.empty() || name == "." || name == ".." || !is_utf8(name))
      return fail(Code::kInvalid, fmt::format("--file {}: a file with a name in UTF-8 is needed", to_utf8(path)));
    if (!names.insert(name).second)
      return fail(Code::kInvalid,
                  fmt::format("--file {}: another one is called {}, too, and they would lie side by side", path, name));
    PIF_TRY_VALUE(std::string content, read_whole(path, room));
    room -= content.size();
    files.push_back({name, std::move(content)});
  }
  return {};
}

}  // namespace

void add_worker_options(CLI::App& app, WorkerOptions& options) {
  app.add_option("--read", options.read, "a folder on the LFSs' hosts that workers may read and run programs in")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--write", options.write, "a folder on the LFSs' hosts that workers may read and write in")
      ->type_name("DIR")
      ->allow_extra_args(false);
  if (app.get_option_no_throw("--file") != nullptr) return;
  app.add_option("--file", options.files, "a local file that each worker finds in its $TMPDIR")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

Status check_grants(const std::vector<FolderGrant>& grants) {
  if (grants.size() > kFolderGrantsMax)
    return fail(Code::kInvalid,
                fmt::format("{} folders are given to workers, with --read and --write; at most {} may be",
                            grants.size(), kFolderGrantsMax));
  for (const FolderGrant& grant : grants) {
    const bool is_good = grant.folder.starts_with("/") && grant.folder.size() <= kFolderBytesMax &&
                         is_utf8(grant.folder) && grant.folder.find('\0') == std::string::npos;
    if (!is_good)
      return fail(Code::kInvalid,
                  fmt::format("{} cannot be given to workers: an absolute path in UTF-8 of at most {} bytes is needed",
                              to_utf8(grant.folder), kFolderBytesMax));
  }
  return {};
}

Status take_worker_options(const WorkerOptions& options, ControllerOptions& into) {
  PIF_TRY(add_folders(options.read, false, into.grants));
  PIF_TRY(add_folders(options.write, true, into.grants));
  PIF_TRY(check_grants(into.grants));
  return add_files(options.files, into.files);
}

}  // namespace pif::tool
