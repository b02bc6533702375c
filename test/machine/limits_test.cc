// What a process may use: its cores, and what control groups leave, read from a folder that has the kernel's files.
#include <sched.h>

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "pif/machine/limits.h"

namespace pif::machine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1u << 20;

// A process's world: what of /proc and of its mounted groups a test writes there.
class World {
 public:
  World() : root_((fs::temp_directory_path() / "pif-group-limits-XXXXXX").string()) {
    REQUIRE(::mkdtemp(root_.data()) != nullptr);
  }
  ~World() { fs::remove_all(root_); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  World& write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return *this;
  }
  World& version_2(const std::string& group, const std::string& mounted = "/") {
    write("/proc/self/cgroup", "0::" + group + "\n");
    return write("/proc/self/mountinfo",
                 "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                 "30 22 0:26 " +
                     mounted + " /groups rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  std::optional<unsigned> cores() const { return group_cores(root_); }
  std::optional<std::uint64_t> memory() const { return group_memory(root_); }

 private:
  std::string root_;
};

TEST_CASE("a process may use the cores that it is bound to") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  const std::vector<std::uint32_t> all = allowed_cores();
  REQUIRE(all.size() == static_cast<std::size_t>(CPU_COUNT(&before)));
  CPU_ZERO(&one);
  CPU_SET(all.back(), &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK((allowed_cores() == std::vector<std::uint32_t>{all.back()}));
  CHECK(usable_cores() == 1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK((allowed_cores() == all));
}

TEST_CASE("without control groups nothing is limited") {
  const World world;
  CHECK(!world.cores());
  CHECK(!world.memory());
}

TEST_CASE("version 2: the least of the group's own limits and of those above it holds") {
  World world;
  world.version_2("/a/b").write("/groups/cpu.max", "max 100000\n").write("/groups/memory.max", "max\n");
  CHECK(!world.cores());
  CHECK(!world.memory());
  world.write("/groups/a/cpu.max", "150000 100000\n").write("/groups/a/b/cpu.max", "400000 100000\n");
  CHECK(world.cores() == 2u);  // a core and a half, rounded up
  world.write("/groups/a/b/memory.max", std::to_string(900 * kMiB))
      .write("/groups/a/memory.max", std::to_string(700 * kMiB));
  CHECK(world.memory() == 700 * kMiB);
  world.write("/groups/memory.max", std::to_string(600 * kMiB));
  CHECK(world.memory() == 600 * kMiB);
}

TEST_CASE("version 2: what the group has taken is gone, but files that it has cached are not") {
  World world;
  world.version_2("/a").write("/groups/a/memory.max", std::to_string(700 * kMiB));
  world.write("/groups/a/memory.current", std::to_string(300 * kMiB));
  CHECK(world.memory() == 400 * kMiB);
  world.write("/groups/a/memory.stat", "anon 1\ninactive_file " + std::to_string(100 * kMiB) + "\nactive_file " +
                                           std::to_string(50 * kMiB) + "\n");
  CHECK(world.memory() == 550 * kMiB);
  world.write("/groups/a/memory.current", std::to_string(2000 * kMiB));
  CHECK(world.memory() == 0u);
}

TEST_CASE("version 1: each controller has a tree of its own") {
  World world;
  world.write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/m/n\n3:cpu,cpuacct:/c\n0::/\n");
  world.write("/proc/self/mountinfo",
              "35 31 0:32 / /groups/memory rw,relatime - cgroup cgroup rw,memory\n"
              "32 31 0:29 / /groups/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
              "41 31 0:38 / /groups/unified rw,relatime - cgroup2 cgroup2 rw\n");
  world.write("/groups/cpu/c/cpu.cfs_period_us", "50000\n").write("/groups/cpu/c/cpu.cfs_quota_us", "-1\n");
  world.write("/groups/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(!world.cores());
  CHECK(world.memory() > std::uint64_t{1} << 62);
  world.write("/groups/cpu/c/cpu.cfs_quota_us", "200000\n");
  CHECK(world.cores() == 4u);
  world.write("/groups/memory/m/memory.limit_in_bytes", std::to_string(512 * kMiB));
  world.write("/groups/memory/m/memory.usage_in_bytes", std::to_string(200 * kMiB));
  world.write("/groups/memory/m/memory.stat",
              "inactive_file 7\ntotal_inactive_file " + std::to_string(100 * kMiB) + "\ntotal_active_file 0\n");
  CHECK(world.memory() == 412 * kMiB);
}

TEST_CASE("in a container the group that is mounted is the process's own") {
  World world;
  world.version_2("/docker/1/x", "/docker/1").write("/groups/x/cpu.max", "100000 100000\n");
  CHECK(world.cores() == 1u);
  world.version_2("/../../elsewhere").write("/groups/cpu.max", "300000 100000\n");
  CHECK(world.cores() == 3u);
}

TEST_CASE("files that hold nonsense limit nothing") {
  World world;
  world.version_2("/a").write("/groups/a/cpu.max", "much 0\n").write("/groups/a/memory.max", "-5\n");
  world.write("/groups/cpu.max", "100000 0\n");
  CHECK(!world.cores());
  CHECK(!world.memory());
  world.write("/proc/self/cgroup", "0\n:\n").write("/proc/self/mountinfo", "- cgroup2\n1 2 - -\n");
  CHECK(!world.cores());
}

}  // namespace
}  // namespace pif::machine
