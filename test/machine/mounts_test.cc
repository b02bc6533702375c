// What is mounted, as the kernel tells it.
#include "pif/machine/mounts.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using pif::machine::all_mounted;

TEST_CASE("mounts have their names, whatever these are made of") {
  char root[] = "/tmp/pif-mounts-XXXXXX";
  REQUIRE(::mkdtemp(root) != nullptr);
  const std::string folder = std::string(root) + "/proc/self";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/mountinfo") << "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                                          "30 22 0:50 / /a\\040b\\134 rw - fuse.pif-mount /srv/p\\040q rw,user_id=0\n"
                                          "a line that is none\n";
  const auto all = all_mounted(root);
  std::filesystem::remove_all(root);
  REQUIRE(all.size() == 2);
  CHECK(all[0].at == "/");
  CHECK(all[0].type == "ext4");
  CHECK(all[1].at == "/a b\\");
  CHECK(all[1].type == "fuse.pif-mount");
  CHECK(all[1].source == "/srv/p q");
  CHECK(all[1].options == "rw,user_id=0");
  CHECK(all_mounted("/nowhere").empty());
}
