// The file systems that a user knows: one folder a line, the oldest first.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "files/files.h"
#include "files/user_folders.h"
#include "pif/base/handle.h"
#include "pif/base/write_all.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

constexpr std::size_t kKnownBytesMax = 1u << 20;

std::string known_path() {
  const std::string folder = user_folder("XDG_STATE_HOME", ".local/state");
  return folder.empty() ? "" : folder + "/known";
}

void add(std::vector<std::string>& folders, std::string folder) {
  if (!folder.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end())
    folders.push_back(std::move(folder));
}

Result<std::vector<std::string>> read_known(const std::string& path) {
  std::vector<std::string> folders;
  const auto text = read_file(path, kKnownBytesMax);
  if (!text && text.error().code != Code::kNotFound) return fail(text.error());
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    add(folders, std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

}  // namespace

Result<std::vector<std::string>> known_clusters() {
  std::vector<std::string> folders;
  if (const std::string path = known_path(); !path.empty()) {
    PIF_TRY_VALUE(folders, read_known(path));
  }
  add(folders, default_cluster());
  return folders;
}

Status remember_cluster(const std::string& folder) {
  const std::string path = known_path();
  if (path.empty()) return {};
  if (folder.find('\n') != std::string::npos)
    return fail(Code::kInvalid, "a folder with a line break in its name cannot be remembered");
  PIF_TRY_VALUE(const auto folders, read_known(path));
  if (std::find(folders.begin(), folders.end(), folder) != folders.end()) return {};
  PIF_TRY(make_folder(std::filesystem::path(path).parent_path().string(), 0700));
  // One write at the end: what another one adds at the same time stays.
  const UniqueFd fd(::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(errno, "cannot write " + path);
  const std::string line = folder + "\n";
  return write_all(fd.get(), std::as_bytes(std::span(line)), "cannot write " + path);
}

Status forget_cluster(const std::string& folder) {
  PIF_TRY(forget_default(folder));
  const std::string path = known_path();
  if (path.empty()) return {};
  PIF_TRY_VALUE(auto folders, read_known(path));
  if (std::erase(folders, folder) == 0) return {};
  std::string text;
  for (const std::string& left : folders) text += left + "\n";
  return write_file(path, text, 0600, Existing::kReplace);
}

}  // namespace pif::cluster
