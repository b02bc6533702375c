// What all hosts of a file system have alike, as it goes from the server's host to the others.
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>

#include "description/description.h"
#include "description/hosts.h"
#include "files/files.h"
#include "keys/keys.h"
#include "pif/base/handle.h"
#include "pif/base/limits.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

constexpr std::string_view kDescription = "pif.toml";
constexpr std::string_view kHostKeys = "keys/hosts/";
constexpr std::string_view kClientKeys = "keys/clients/";
constexpr std::string_view kPublic = ".pub";
constexpr std::size_t kPublicKeyBytesMax = 4096;
constexpr std::size_t kFilesMax = 16384;
constexpr std::size_t kBytesMax = kHeaderBytesMax - (64u << 10);  // a heartbeat's answer has more than this in it
constexpr mode_t kOpenMode = 0644;
constexpr mode_t kPublicMode = 0444;
constexpr mode_t kSecretMode = 0400;

bool is_key_of(std::string_view name, std::string_view folder) {
  if (!name.starts_with(folder) || !name.ends_with(kPublic) || name.size() <= folder.size() + kPublic.size())
    return false;
  const auto bare = name.substr(folder.size(), name.size() - folder.size() - kPublic.size());
  return folder == kHostKeys ? check_host_name(bare).has_value() : is_user_name(bare);
}

// Whoever sent them may be anybody who has the cluster's key: never anything but these files is written.
Status check_files(std::span<const SharedFile> files) {
  if (files.size() > kFilesMax) return fail(Code::kInvalid, "more files than all hosts may have alike");
  std::set<std::string_view> names;
  for (const SharedFile& file : files) {
    const bool is_key = is_key_of(file.name, kHostKeys) || is_key_of(file.name, kClientKeys);
    if (file.name != kDescription && !is_key)
      return fail(Code::kInvalid, fmt::format("\"{}\" is no file that all hosts have alike", file.name));
    if (file.content.size() > (is_key ? kPublicKeyBytesMax : kDescriptionBytesMax))
      return fail(Code::kInvalid, fmt::format("{} has {} bytes, which is too many", file.name, file.content.size()));
    if (!names.insert(file.name).second) return fail(Code::kInvalid, fmt::format("{} comes twice", file.name));
  }
  return names.contains(kDescription) ? Status() : fail(Code::kInvalid, "the hosts' files come without pif.toml");
}

const std::string& content_of(std::span<const SharedFile> files, std::string_view name) {
  static const std::string kNone;
  const auto found = std::find_if(files.begin(), files.end(), [&](const SharedFile& f) { return f.name == name; });
  return found == files.end() ? kNone : found->content;
}

// Names of what is in the folder now, as SharedFile has them.
std::vector<std::string> keys_in(const std::string& folder, std::string_view inside) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(fmt::format("{}/{}", folder, inside), error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::string name = fmt::format("{}{}", inside, entry->path().filename().string());
    if (is_key_of(name, inside)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// New ones first: nobody who is to go on is shut out meanwhile.
Status write_keys(const std::string& folder, std::span<const SharedFile> files) {
  for (const SharedFile& file : files) {
    if (file.name == kDescription) continue;
    const std::string path = fmt::format("{}/{}", folder, file.name);
    if (const auto before = read_file(path, kPublicKeyBytesMax); before && *before == file.content) continue;
    const bool is_host = is_key_of(file.name, kHostKeys);
    PIF_TRY(write_file(path, file.content, is_host ? kPublicMode : kSecretMode, Existing::kReplace));
  }
  for (const std::string_view inside : {kHostKeys, kClientKeys}) {
    for (const std::string& name : keys_in(folder, inside)) {
      const std::string path = fmt::format("{}/{}", folder, name);
      const auto is_it = [&](const SharedFile& file) { return file.name == name; };
      if (std::none_of(files.begin(), files.end(), is_it) && ::unlink(path.c_str()) != 0 && errno != ENOENT)
        return fail_errno(errno, "cannot remove " + path);
    }
    PIF_TRY(sync_folder(fmt::format("{}/{}", folder, inside)));
  }
  return {};
}

// Daemons of one host take the same files.
Result<UniqueFd> lock_folder(const std::string& folder) {
  const std::string path = own_host_path(folder);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot open " + path);
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail_errno(errno, "cannot lock " + path);
  return fd;
}

Status make_key_folders(const std::string& folder) {
  PIF_TRY(make_folder(folder, 0755));
  PIF_TRY(make_folder(key_folder(folder), 0711));
  PIF_TRY(make_folder(client_key_folder(folder), 0700));
  return make_folder(host_key_folder(folder), 0755);
}

// The folder of a host may be there already, from a join that was cut off, and is completed then.
Status check_same(const std::string& folder, const HostFiles& files) {
  PIF_TRY_VALUE(const std::string before, read_own_host(folder));
  if (!before.empty() && before != files.host)
    return fail(Code::kExists, fmt::format("{} is the folder of host {}, not of {}", folder, before, files.host));
  const auto here = read_key_file(folder);
  if (!here && here.error().code == Code::kNotFound) return {};
  PIF_TRY_VALUE(const KeyFile sent, parse_key_file(files.cluster_key));
  if (here && share_a_key(*here, sent)) return {};
  return fail(Code::kExists, folder + " is the folder of another file system");
}

Status check_pair(const HostFiles& files) {
  const std::string& own = content_of(files.shared, fmt::format("{}{}{}", kHostKeys, files.host, kPublic));
  const std::string in_pair = "public " + own.substr(0, own.find(' ')) + "\n";
  if (!own.empty() && files.host_pair.starts_with(in_pair)) return {};
  return fail(Code::kInvalid,
              fmt::format("the pair for host {} is not the one in keys/hosts/{}.pub", files.host, files.host));
}

}  // namespace

Result<std::vector<SharedFile>> read_shared_files(const Cluster& cluster) {
  std::vector<SharedFile> files;
  PIF_TRY_VALUE(std::string text, read_file(description_path(cluster.folder), kDescriptionBytesMax));
  files.push_back({std::string(kDescription), std::move(text)});
  std::size_t bytes = files.front().content.size();
  for (const std::string_view inside : {kHostKeys, kClientKeys}) {
    for (std::string& name : keys_in(cluster.folder, inside)) {
      PIF_TRY_VALUE(std::string content, read_file(fmt::format("{}/{}", cluster.folder, name), kPublicKeyBytesMax));
      bytes += name.size() + content.size() + 16;
      files.push_back({std::move(name), std::move(content)});
    }
  }
  if (bytes <= kBytesMax) return files;
  return fail(Code::kTooLarge, fmt::format("pif.toml and the public keys of {} have {} bytes, and {} can be handed to "
                                           "other hosts",
                                           cluster.folder, bytes, kBytesMax));
}

Result<Cluster> take_shared_files(const std::string& folder, std::span<const SharedFile> files) {
  PIF_TRY(check_files(files));
  PIF_TRY_VALUE(const UniqueFd lock, lock_folder(folder));
  PIF_TRY_VALUE(Cluster before, load_cluster(folder));
  const std::string& text = content_of(files, kDescription);
  PIF_TRY_VALUE(Cluster after, parse_description(before.folder, text, before.own_host));
  if (!after.has_hosts() || after.id != before.id)
    return fail(Code::kInvalid,
                fmt::format("the description that came is of file system {}, not of {}", after.id, before.id));
  if (after.edition <= before.edition) return before;
  after.folder_number = before.folder_number;
  PIF_TRY(write_keys(before.folder, files));
  PIF_TRY(write_file(description_path(before.folder), text, kOpenMode, Existing::kReplace));
  return after;
}

Result<HostFiles> files_for_host(const Cluster& cluster, const std::string& host, const net::CurveKeys& pair) {
  HostFiles files;
  files.host = host;
  PIF_TRY_VALUE(files.shared, read_shared_files(cluster));
  PIF_TRY_VALUE(const KeyFile keys, load_key_file(cluster));
  files.cluster_key = format_key_file(keys);
  files.host_pair = format_keys(pair);
  PIF_TRY_VALUE(const net::CurveKeys owner, owner_pair_of(pair));
  files.client_pair = format_keys(owner);
  PIF_TRY(check_pair(files));
  return files;
}

Result<Cluster> receive_host(const std::string& folder, const HostFiles& files) {
  PIF_TRY(check_files(files.shared));
  PIF_TRY(check_host_name(files.host));
  PIF_TRY(check_pair(files));
  const std::string& text = content_of(files.shared, kDescription);
  PIF_TRY_VALUE(const Cluster received, parse_description(folder, text, files.host));
  PIF_TRY(check_same(folder, files));
  PIF_TRY(make_key_folders(folder));
  const std::string keys = key_folder(folder);
  if (::access(cluster_key_path(folder).c_str(), F_OK) == 0)
    PIF_TRY(take_key_file(folder, files.cluster_key));
  else
    PIF_TRY(write_file(cluster_key_path(folder), files.cluster_key, kSecretMode, Existing::kReplace));
  PIF_TRY(write_file(keys + "/host.curve", files.host_pair, kSecretMode, Existing::kReplace));
  if (!files.client_pair.empty())
    PIF_TRY(write_file(keys + "/client.curve", files.client_pair, kSecretMode, Existing::kReplace));
  PIF_TRY(write_own_host(folder, files.host));
  PIF_TRY(write_keys(folder, files.shared));
  const auto before = load_cluster(folder);
  if (!before || before->edition < received.edition)
    PIF_TRY(write_file(description_path(folder), text, kOpenMode, Existing::kReplace));
  return load_cluster(folder);
}

}  // namespace pif::cluster
