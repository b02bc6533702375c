// Which of a file system and its copies uses a root that all of them name.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "description/description.h"
#include "files/files.h"
#include "pif/base/limits.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

constexpr mode_t kUsedByMode = 0600;

std::string used_by_path(const std::string& folder) { return folder + "/used-by"; }

bool is_same(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

bool is_inside(const Cluster& cluster, const std::string& folder) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(folder.c_str(), nullptr), &std::free);
  return (real ? std::string(real.get()) : folder).starts_with(cluster.folder + "/");
}

// One that cannot be read may.
bool names(const std::string& user, const std::string& folder) {
  if (::access(description_path(user).c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return false;
  const auto cluster = load_cluster(user);
  if (!cluster || is_same(cluster->server_folder(), folder)) return true;
  return std::any_of(cluster->lfss.begin(), cluster->lfss.end(),
                     [&](const LfsEntry& lfs) { return is_same(lfs.root, folder); });
}

}  // namespace

std::string last_user_of(const std::string& folder) {
  auto text = read_file(used_by_path(folder), kPathBytesMax + 1);
  if (!text) return "";
  if (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

Status note_user(const Cluster& cluster, const std::string& folder) {
  if (is_inside(cluster, folder) || last_user_of(folder) == cluster.folder) return {};
  return write_file(used_by_path(folder), cluster.folder + "\n", kUsedByMode, Existing::kReplace);
}

std::string other_user_of(const Cluster& cluster, const std::string& folder) {
  if (is_inside(cluster, folder)) return "";
  std::string user = last_user_of(folder);
  const bool is_free = user.empty() || is_same(user, cluster.folder) || !names(user, folder);
  return is_free ? "" : user;
}

Status check_unshared(const Cluster& cluster, const std::string& folder) {
  const std::string other = other_user_of(cluster, folder);
  if (other.empty()) return {};
  return fail(Code::kExists,
              fmt::format("{0} belongs to the file system in {1}, and {2} names it, too: remove {1}/pif.toml "
                          "if {2} takes its place (pif up --take-roots), or give {2} roots of its own",
                          folder, other, cluster.folder));
}

bool is_own_folder(const Cluster& cluster, const std::string& folder) {
  return is_inside(cluster, folder) || is_same(last_user_of(folder), cluster.folder);
}

}  // namespace pif::cluster
