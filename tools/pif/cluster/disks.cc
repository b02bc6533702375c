#include "cluster/disks.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/format.h>

namespace pif::cli {
namespace {

Result<std::string> real_folder(const std::string& path) {
  std::error_code failed;
  const std::string real = std::filesystem::canonical(path, failed).string();
  if (failed == std::errc::no_such_file_or_directory)
    return fail(Code::kNotFound, fmt::format("{} is not there: mount the disk, and name the folder where it is", path));
  if (failed) return fail_errno(failed.value(), "cannot find the folder " + path);
  if (!std::filesystem::is_directory(real, failed)) return fail(Code::kNotDirectory, path + " is no folder of a disk");
  return real;
}

// Two mount points where nothing is mounted are on one device, too.
Status check_devices(const std::vector<std::string>& folders) {
  std::map<dev_t, std::string> devices;
  for (const std::string& folder : folders) {
    struct stat about {};
    if (::stat(folder.c_str(), &about) != 0) return fail_errno(errno, "cannot look at " + folder);
    const auto [other, is_new] = devices.emplace(about.st_dev, folder);
    if (!is_new)
      return fail(Code::kInvalid,
                  fmt::format("{} and {} are on one disk: mount the disks there, or take the folders as "
                              "they are with --force",
                              other->second, folder));
  }
  return {};
}

}  // namespace

Result<DiskPlan> plan_disks(const Disks& disks) {
  DiskPlan plan;
  for (const std::string& path : disks.folders) {
    PIF_TRY_VALUE(plan.folders.emplace_back(), real_folder(path));
  }
  const auto many = static_cast<std::uint32_t>(plan.folders.size());
  plan.count = disks.count == 0 ? many : disks.count;
  if (many == 0) return plan;
  if (plan.count % many != 0)
    return fail(Code::kInvalid, fmt::format("{} LFSs cannot be as many on each of {} disks: let -n be a multiple of {}",
                                            plan.count, many, many));
  if (disks.force) return plan;
  PIF_TRY(check_devices(plan.folders));
  if (std::uint64_t{disks.bevy} * 2 > many)
    return fail(Code::kInvalid,
                fmt::format("bevies of {} keep parity among {} LFSs, which would be on {} disks: a lost disk could be "
                            "two of them, and lose files. Give as many disks, or --force",
                            disks.bevy, disks.bevy * 2, many));
  return plan;
}

Status check_same_disks(const cluster::Cluster& cluster, const std::vector<std::string>& folders) {
  for (std::size_t i = 0; !folders.empty() && i < cluster.lfss.size(); ++i) {
    std::error_code failed;
    const std::string disk = std::filesystem::weakly_canonical(folders[i % folders.size()], failed).string();
    const cluster::LfsEntry& lfs = cluster.lfss[i];
    if (lfs.root == cluster::disk_folder(disk, cluster.id) + "/" + lfs.name) continue;
    return fail(Code::kInvalid, fmt::format("{} has the root of {} at {}; leave out --disk, or take another folder",
                                            cluster.folder, lfs.name, lfs.root));
  }
  return {};
}

}  // namespace pif::cli
