#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <thread>

#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pif/base/version.h"
#include "pif/tool/calibration.h"

namespace pif::tool {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return "unknown";
}

std::uint64_t memory_gib() {
  const double bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<std::uint64_t>(std::llround(bytes / (1u << 30)));  // kernels differ in what they keep of it
}

// What is under a root: which file system, how large, and whether another LFS is on the same one.
std::string disk_of(const std::string& root, std::map<dev_t, std::size_t>& devices) {
  struct statfs space {};
  struct stat status {};
  if (::statfs(root.c_str(), &space) != 0 || ::stat(root.c_str(), &status) != 0) return "not there";
  const std::size_t device = devices.emplace(status.st_dev, devices.size()).first->second;
  const double gib = static_cast<double>(space.f_blocks) * static_cast<double>(space.f_bsize) / (1u << 30);
  return fmt::format("disk {}, type {:x}, {:.1f} GiB", device, space.f_type, gib);
}

}  // namespace

std::string Hardware::difference(const Hardware& other) const {
  std::vector<std::string> found;
  const auto compare = [&](const char* what, const auto& mine, const auto& its) {
    if (mine != its) found.push_back(fmt::format("{}: {} there, {} here", what, mine, its));
  };
  compare("processor", processor, other.processor);
  compare("cores", cores, other.cores);
  compare("memory, GiB", memory_gib, other.memory_gib);
  compare("LFSs", fmt::format("{}", fmt::join(lfss, "; ")), fmt::format("{}", fmt::join(other.lfss, "; ")));
  compare("version", version, other.version);
  return fmt::format("{}", fmt::join(found, ", "));
}

Hardware hardware_of(const cluster::Cluster& cluster) {
  Hardware hardware;
  hardware.processor = processor_name();
  hardware.cores = std::max(1U, std::thread::hardware_concurrency());
  hardware.memory_gib = memory_gib();
  hardware.version = version();
  std::map<dev_t, std::size_t> devices;
  for (const cluster::LfsEntry& lfs : cluster.lfss) {
    const std::string what = cluster.is_here(lfs) ? disk_of(lfs.root, devices) : "on host " + lfs.host;
    hardware.lfss.push_back(fmt::format("{}: {}", lfs.name, what));
  }
  return hardware;
}

}  // namespace pif::tool
