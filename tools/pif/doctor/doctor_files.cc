// What `pif doctor` looks at in the folders of a file system. It only reads.
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cluster/lfs_identity.h"
#include "doctor/doctor.h"
#include "pif/base/limits.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kWarnShare = 20;  // a twentieth of a disk is left: soon full

std::string octal(mode_t mode) { return fmt::format("{:04o}", static_cast<unsigned>(mode & 07777)); }

// ---- keys ----

void check_key(Doctor& doctor, const std::string& path, std::size_t& found) {
  struct stat key {};
  if (::stat(path.c_str(), &key) != 0) {
    const int error = errno;
    if (error == EACCES && ::geteuid() != 0)
      return doctor.ok("keys", path + " can be read by the file system's owner only, as it should be");
    return doctor.wrong("keys", fmt::format("{}: {}", path, std::strerror(error)),
                        "restore it from a copy; without the cluster's key no daemon starts");
  }
  ++found;
  if ((key.st_mode & 077) != 0)
    return doctor.wrong("keys", fmt::format("{} has mode {}: others can act as any user", path, octal(key.st_mode)),
                        fmt::format("chmod 0400 {}; if strangers could read it, make new keys", path));
  if (::geteuid() != 0 && key.st_uid != ::geteuid())
    doctor.warn("keys", fmt::format("{} belongs to user {}", path, key.st_uid), "run pif up as that user");
}

// ---- roots ----

void check_identity(Doctor& doctor, const cluster::Cluster& cluster, const cluster::LfsEntry& lfs) {
  const std::string path = lfs.root + "/lfs.toml";
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT && cluster.stage == cluster::Stage::kReady)
    return doctor.wrong("roots", path + " is missing", "mount the disk; if it is lost: pif node replace " + lfs.name);
  if (::access(path.c_str(), R_OK) != 0) return;  // not made yet, or not ours to read
  auto identity = identity_of(path);
  const auto format = parse_number(identity["format"], path);
  if (format && *format > kRootFormat)
    return doctor.wrong(
        "roots", fmt::format("{} has format {}; this program knows formats up to {}", lfs.root, *format, kRootFormat),
        "install the release that wrote it, or a newer one");
  if (!lfs.uuid.empty() && identity["uuid"] != lfs.uuid)
    return doctor.wrong("roots",
                        fmt::format("{} is the root {}, and pif.toml says {}", lfs.root, identity["uuid"], lfs.uuid),
                        "mount the right disk there; if it is lost: pif node replace " + lfs.name);
  if (identity["cluster"] != cluster.id || identity["node"] != std::to_string(lfs.id))
    doctor.wrong("roots",
                 fmt::format("{} is node {} of file system {}, not node {} of {}", lfs.root, identity["node"],
                             identity["cluster"], lfs.id, cluster.id),
                 fmt::format("let root of [[lfs]] {} in pif.toml name the right folder", lfs.name));
}

// A copy names the same folders elsewhere as what it is a copy of.
void check_user(Doctor& doctor, const cluster::Cluster& cluster, const std::string& folder) {
  const std::string other = cluster::other_user_of(cluster, folder);
  if (other.empty()) return;
  doctor.wrong("roots",
               fmt::format("{} belongs to the file system in {}, and {} names it, too", folder, other, cluster.folder),
               fmt::format("if this one takes its place: pif up --take-roots {}; else give it roots of its own",
                           cluster.folder));
}

void check_folder(Doctor& doctor, const std::string& folder, uid_t owner) {
  struct stat root {};
  if (::stat(folder.c_str(), &root) != 0) {
    if (errno == ENOENT) return;  // made by pif up; or check_identity says it
    return doctor.wrong("roots", fmt::format("{}: {}", folder, std::strerror(errno)),
                        "see that its owner can reach it");
  }
  if (root.st_uid != owner)
    return doctor.wrong("roots",
                        fmt::format("{} belongs to user {}, the file system to user {}", folder, root.st_uid, owner),
                        fmt::format("chown -R {} {}", owner, folder));
  if ((root.st_mode & 077) != 0)
    doctor.wrong(
        "roots",
        fmt::format("{} has mode {}: others of this machine can reach the records in it", folder, octal(root.st_mode)),
        "chmod 0700 " + folder);
}

// ---- disks ----

// Kinds of file systems that do not keep what they say, or not for long.
std::optional<std::string> bad_kind(std::int64_t type) {
  static const std::map<std::int64_t, std::string> kKinds = {{0x6969, "NFS"}, {0xff534d42, "CIFS"}, {0xfe534d42, "SMB"},
                                                             {0x517b, "SMB"}, {0x00c36400, "Ceph"}, {0x01021997, "9P"}};
  const auto at = kKinds.find(type);
  return at == kKinds.end() ? std::nullopt : std::optional(at->second);
}

constexpr std::int64_t kTmpfs = 0x01021994;

// What an LFS keeps free for its log and catalogue (docs/PROTOCOL.md "LFS operations").
std::uint64_t reserve_of(std::uint64_t total) { return std::clamp(total / 50, kMiB, 64 * kMiB); }

void check_space(Doctor& doctor, const std::string& folder, const struct statvfs& disk, std::size_t sharing) {
  const std::uint64_t total = std::uint64_t{disk.f_blocks} * disk.f_frsize;
  const std::uint64_t left = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::string text = fmt::format("{}: {} of {} free", folder, human_bytes(left), human_bytes(total));
  if (left < reserve_of(total))
    return doctor.wrong("disks",
                        fmt::format("{}; LFSs take no new records below {}", text, human_bytes(reserve_of(total))),
                        "remove files, or give the LFS a larger disk");
  if (disk.f_files > 0 && disk.f_favail == 0)
    return doctor.wrong("disks",
                        fmt::format("{}, but none of its {} inodes: no file can be made there", text, disk.f_files),
                        "remove small files on that disk, or make its file system with more inodes");
  if (disk.f_files > 0 && disk.f_favail * kWarnShare < disk.f_files)
    return doctor.warn("disks", fmt::format("{}, but only {} of {} inodes", text, disk.f_favail, disk.f_files),
                       "remove small files, or make the disk's file system with more inodes");
  if (left * kWarnShare < total)
    return doctor.warn("disks", text + ": nearly full", "remove files, or give it a larger disk");
  doctor.ok("disks", sharing > 1 ? fmt::format("{}; {} LFSs share it, its speed too", text, sharing) : text);
}

void check_disk(Doctor& doctor, const std::string& folder, std::size_t sharing) {
  struct statvfs disk {};
  struct statfs kind {};
  if (::statvfs(folder.c_str(), &disk) != 0 || ::statfs(folder.c_str(), &kind) != 0)
    return doctor.wrong("disks", fmt::format("{}: {}", folder, std::strerror(errno)), "see that its disk is mounted");
  if ((disk.f_flag & ST_RDONLY) != 0)
    return doctor.wrong("disks", folder + " is mounted read-only",
                        "see with dmesg why, repair the disk, and mount it for writing");
  if (const auto bad = bad_kind(static_cast<std::uint32_t>(kind.f_type)))
    return doctor.wrong("disks",
                        fmt::format("{} lies on {}: a network file system loses what was synced", folder, *bad),
                        "give the LFS a root on a local disk");
  if (kind.f_type == kTmpfs)
    doctor.warn("disks", folder + " lies in memory (tmpfs): everything is gone after a reboot",
                "use a disk for what must stay");
  check_space(doctor, folder, disk, sharing);
}

// The deepest folder above that is there: where something not made yet will lie.
std::string existing(const std::string& path) {
  std::filesystem::path at(path);
  std::error_code error;
  while (!std::filesystem::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  return at.string();
}

}  // namespace

void check_keys(Doctor& doctor, const cluster::Cluster& cluster) {
  const std::string keys = cluster.folder + "/keys";
  const std::size_t before = doctor.findings().size();
  struct stat folder {};
  if (::stat(keys.c_str(), &folder) == 0 && (folder.st_mode & 022) != 0)
    doctor.wrong("keys",
                 fmt::format("{} has mode {}: others can put keys of their own there", keys, octal(folder.st_mode)),
                 "chmod 0700 " + keys + ", and look for keys in keys/clients that are not yours");
  std::size_t found = 0;
  check_key(doctor, keys + "/cluster.key", found);
  if (cluster.tcp == cluster::TcpMode::kCurve) {
    const std::string own = cluster.has_hosts() ? "/host.curve" : "/server.curve";
    for (const std::string& name : {own, std::string("/client.curve")}) check_key(doctor, keys + name, found);
  }
  if (cluster.tcp == cluster::TcpMode::kInsecureLoopback)
    doctor.warn("keys", "tcp is neither encrypted nor authenticated (insecure-loopback)",
                "use it for measurements only");
  if (doctor.findings().size() == before) doctor.ok("keys", fmt::format("{} with the right permissions", found));
}

void check_roots(Doctor& doctor, const cluster::Cluster& cluster) {
  const std::size_t before = doctor.findings().size();
  struct stat description {};
  if (::stat((cluster.folder + "/pif.toml").c_str(), &description) != 0) return;
  if (cluster.serves_here()) {
    check_folder(doctor, cluster.server_folder(), description.st_uid);
    check_user(doctor, cluster, cluster.server_folder());
  }
  std::size_t roots = 0;
  for (const auto& lfs : cluster.lfss) {
    if (!cluster.is_here(lfs)) continue;
    ++roots;
    check_folder(doctor, lfs.root, description.st_uid);
    check_identity(doctor, cluster, lfs);
    check_user(doctor, cluster, lfs.root);
  }
  if (doctor.findings().size() == before)
    doctor.ok("roots", fmt::format("{}{} belong to this file system's owner", roots,
                                   cluster.serves_here() ? " and the server's folder" : ""));
}

// One line for each disk: what its first folder is.
void check_disks(Doctor& doctor, const cluster::Cluster& cluster) {
  std::map<dev_t, std::pair<std::string, std::size_t>> disks;
  const auto add = [&](const std::string& folder, std::size_t lfss) {
    struct stat where {};
    const std::string there = existing(folder);
    if (::stat(there.c_str(), &where) != 0) return;
    auto& [name, sharing] = disks[where.st_dev];
    if (name.empty()) name = there;
    sharing += lfss;
  };
  for (const auto& lfs : cluster.lfss) {
    if (cluster.is_here(lfs)) add(lfs.root, 1);
  }
  if (cluster.serves_here()) add(cluster.server_folder(), 0);
  for (const auto& [device, disk] : disks) check_disk(doctor, disk.first, disk.second);
}

}  // namespace pif::cli
