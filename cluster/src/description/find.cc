#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "description/description.h"
#include "files/files.h"
#include "files/user_folders.h"
#include "pif/base/limits.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

namespace fs = std::filesystem;

// One that is there but may not be looked at counts: opening it will say why it fails.
bool has_description(const std::string& folder) {
  struct stat status {};
  return ::stat(description_path(folder).c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

// One that a stranger put in the way (in /tmp, above a folder of his) is not asked what to connect to, or whom to stop.
// His symbolic link to a good one is his.
bool has_own_description(const std::string& folder) {
  struct stat status {};
  if (::lstat(description_path(folder).c_str(), &status) != 0) return errno != ENOENT && errno != ENOTDIR;
  return (status.st_uid == ::geteuid() || status.st_uid == 0) && has_description(folder);
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// A folder that the user named, directly or through `source`.
Result<std::string> named_folder(const std::string& path, const std::string& source) {
  std::error_code failed;
  const std::string folder = without_trailing_slashes(fs::absolute(path, failed).lexically_normal().string());
  if (failed || !has_description(folder))
    return fail(Code::kNotFound, fmt::format("{} is {}, where there is no pif.toml: name the folder that `pif up` made",
                                             source, failed ? path : folder));
  return folder;
}

// Where the user's default is kept; empty if the user has no home.
std::string default_path() {
  const std::string configuration = user_folder("XDG_CONFIG_HOME", ".config");
  return configuration.empty() ? "" : configuration + "/default";
}

// The folder that the user's default names; empty if there is none.
std::string default_folder(const std::string& path) {
  if (path.empty()) return "";
  const auto text = read_file(path, kPathBytesMax + 1);
  return text ? text->substr(0, text->find('\n')) : "";
}

// The nearest folder, from the current one up, with a pif.toml of the user's or root's; empty if there is none.
std::string folder_above() {
  std::error_code failed;
  fs::path here = fs::current_path(failed);
  if (failed) return "";
  for (;; here = here.parent_path()) {
    if (has_own_description(here.string())) return here.string();
    if (here == here.parent_path()) return "";
  }
}

}  // namespace

Result<FoundCluster> look_up_cluster(const std::string& named) {
  const auto found = [](FoundBy by) {
    return [by](std::string folder) { return FoundCluster{std::move(folder), by}; };
  };
  if (!named.empty()) return named_folder(named, "--pif").transform(found(FoundBy::kNamed));
  if (const std::string set = environment("PIF"); !set.empty())
    return named_folder(set, "$PIF").transform(found(FoundBy::kEnvironment));
  if (std::string above = folder_above(); !above.empty())
    return FoundCluster{std::move(above), FoundBy::kCurrentFolder};
  const std::string path = default_path();
  if (const std::string folder = default_folder(path); !folder.empty())
    return named_folder(folder, "your default (" + path + ")").transform(found(FoundBy::kDefault));
  return fail(
      Code::kNotFound,
      fmt::format(
          "no file system found: --pif is not given, $PIF is not set, there is no pif.toml of yours or root's in the "
          "current folder or above, and {}: start one with `pif up DIR`, or name its folder with --pif",
          path.empty() ? "you have no home for a default" : path + " names none"));
}

Result<std::string> find_cluster(const std::string& named) {
  return look_up_cluster(named).transform([](FoundCluster found) { return std::move(found.folder); });
}

Status offer_default(const std::string& folder) {
  const std::string path = default_path();
  if (path.empty()) return {};
  // A default whose file system is gone would only be in the way.
  if (const std::string present = default_folder(path); !present.empty() && has_description(present)) return {};
  std::error_code failed;
  const std::string absolute = without_trailing_slashes(fs::absolute(folder, failed).lexically_normal().string());
  if (failed) return fail(Code::kIo, fmt::format("cannot find the current folder: {}", failed.message()));
  if (absolute.find('\n') != std::string::npos)
    return fail(Code::kInvalid, "a folder with a line break in its name cannot be the default");
  PIF_TRY(make_folder(fs::path(path).parent_path().string(), 0700));
  return write_file(path, absolute + "\n", 0644, Existing::kReplace);
}

std::string default_cluster() { return default_folder(default_path()); }

Status forget_default(const std::string& folder) {
  const std::string path = default_path();
  if (path.empty() || default_folder(path) != folder || ::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, "cannot remove " + path);
}

}  // namespace pif::cluster
