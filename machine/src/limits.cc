#include "pif/machine/limits.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "pif/machine/mounts.h"

namespace pif::machine {
namespace {

enum class Version : std::uint8_t { kOne, kTwo };

// Where the groups of a controller ("cpu", "memory") are mounted, and which of them is the process's.
struct Place {
  std::string mount_point;
  std::string group;  // below the mount point: "" or "/a/b"
};

// Whether a list "cpu,cpuacct" has the word.
bool has_word(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, ',');)
    if (one == word) return true;
  return false;
}

// From proc/self/cgroup, lines "ID:CONTROLLERS:PATH"; version 2 has none.
std::optional<std::string> group_of(const std::string& root, Version version, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == Version::kTwo ? controllers.empty() : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<Mounted> mount_of(const std::string& root, Version version, std::string_view controller) {
  for (Mounted& mount : all_mounted(root)) {
    if (version == Version::kTwo ? mount.type == "cgroup2"
                                 : mount.type == "cgroup" && has_word(mount.options, controller))
      return std::move(mount);
  }
  return std::nullopt;
}

std::optional<Place> place_of(const std::string& root, Version version, std::string_view controller) {
  const auto mount = mount_of(root, version, controller);
  auto group = group_of(root, version, controller);
  if (!mount || !group) return std::nullopt;
  // In a container a group of the host may be mounted, whose name there is no folder here.
  if (mount->root != "/" && (*group + '/').starts_with(mount->root + '/')) group->erase(0, mount->root.size());
  if (*group == "/" || group->find("..") != std::string::npos) group->clear();
  return Place{root + mount->at, *group};
}

// The folders of the group and of those above it.
std::vector<std::string> folders_of(const Place& place) {
  std::vector<std::string> folders;
  for (std::string group = place.group; !group.empty(); group.erase(group.rfind('/')))
    folders.push_back(place.mount_point + group);
  folders.push_back(place.mount_point);
  return folders;
}

// A number that stands alone in a file, or after `name` in a list of names and numbers. "max" and -1 are none.
std::optional<std::uint64_t> number_in(const std::string& path, std::string_view name = {}) {
  std::ifstream file(path);
  std::string word;
  while (!name.empty() && file >> word && word != name) {
  }
  if (!(file >> word)) return std::nullopt;
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || rest != word.data() + word.size()) return std::nullopt;
  return number;
}

template <typename T>
void lower(std::optional<T>& least, T value) {
  least = least ? std::min(*least, value) : value;
}

struct Quota {
  std::optional<std::uint64_t> time, period;
};

Quota quota_in(const std::string& folder, Version version) {
  if (version == Version::kOne)
    return {number_in(folder + "/cpu.cfs_quota_us"), number_in(folder + "/cpu.cfs_period_us")};
  std::string time;  // "max 100000" or "50000 100000"
  std::ifstream(folder + "/cpu.max") >> time;
  return {number_in(folder + "/cpu.max"), number_in(folder + "/cpu.max", time)};
}

std::optional<unsigned> cores_of(const Place& place, Version version) {
  std::optional<unsigned> least;
  for (const std::string& folder : folders_of(place)) {
    const Quota quota = quota_in(folder, version);
    if (!quota.time || quota.period.value_or(0) == 0) continue;
    const std::uint64_t cores = *quota.time / *quota.period + (*quota.time % *quota.period != 0 ? 1 : 0);
    lower(least, static_cast<unsigned>(std::clamp<std::uint64_t>(cores, 1, UINT32_MAX)));
  }
  return least;
}

std::optional<std::uint64_t> memory_of(const Place& place, Version version) {
  const bool is_one = version == Version::kOne;
  std::optional<std::uint64_t> least;
  for (const std::string& folder : folders_of(place)) {
    const auto limit = number_in(folder + (is_one ? "/memory.limit_in_bytes" : "/memory.max"));
    const auto used = number_in(folder + (is_one ? "/memory.usage_in_bytes" : "/memory.current"));
    if (!limit) continue;
    std::uint64_t cached = 0;
    for (const char* const list : {"inactive_file", "active_file"})
      cached += number_in(folder + "/memory.stat", std::string(is_one ? "total_" : "") + list).value_or(0);
    const std::uint64_t kept = used.value_or(0) - std::min(cached, used.value_or(0));
    lower(least, *limit - std::min(kept, *limit));
  }
  return least;
}

// The least of what the controller's groups of both versions allow.
template <typename T>
std::optional<T> least_of(const std::string& root, std::string_view controller,
                          std::optional<T> (*allowed)(const Place&, Version)) {
  std::optional<T> least;
  for (const Version version : {Version::kOne, Version::kTwo}) {
    const auto place = place_of(root, version, controller);
    const auto limit = place ? allowed(*place, version) : std::nullopt;
    if (limit) lower(least, *limit);
  }
  return least;
}

std::optional<std::uint64_t> free_on_machine() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<unsigned> group_cores(const std::string& root) { return least_of<unsigned>(root, "cpu", cores_of); }

std::optional<std::uint64_t> group_memory(const std::string& root) {
  return least_of<std::uint64_t>(root, "memory", memory_of);
}

std::vector<std::uint32_t> allowed_cores() {
  std::array<cpu_set_t, 16> set{};  // 16,384 of them; the kernel refuses a set that is too small
  std::vector<std::uint32_t> cores;
  if (::sched_getaffinity(0, sizeof set, set.data()) != 0) return cores;
  for (std::uint32_t core = 0; core < 8 * sizeof set; ++core) {
    if (CPU_ISSET_S(core, sizeof set, set.data())) cores.push_back(core);
  }
  return cores;
}

unsigned usable_cores() {
  const std::size_t allowed = std::max<std::size_t>(allowed_cores().size(), 1);
  return std::min(static_cast<unsigned>(allowed), group_cores().value_or(UINT_MAX));
}

std::optional<std::uint64_t> free_memory() {
  auto least = free_on_machine();
  if (const auto in_groups = group_memory()) lower(least, *in_groups);
  return least;
}

}  // namespace pif::machine
