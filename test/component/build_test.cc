// The build id of a program's file.
#include "pif/component/build.h"

#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <span>

#include <catch2/catch.hpp>

#include "pif/component/memory_storage.h"
#include "pif/component/real_storage.h"
#include "sim/program_file.h"

namespace pif::component {
namespace {

std::string build_in(const std::vector<std::byte>& bytes) {
  const auto storage = make_memory_storage(MemoryDisk::make());
  auto file = storage->open("/program", OpenMode::kCreate);
  REQUIRE(file);
  REQUIRE((*file)->write(0, bytes));
  return build_of(**file);
}

}  // namespace

TEST_CASE("build: the id in a program's notes is found behind other notes") {
  CHECK(build_in(sim::program_file("0123456789abcdefghij")) == "0123456789abcdefghij");
  CHECK(build_in(sim::program_file(std::string(64, 'a'))) == std::string(64, 'a'));
}

TEST_CASE("build: a program without an id, with one that is too long, and what is no program have none") {
  CHECK(build_in(sim::program_file("")).empty());
  CHECK(build_in(sim::program_file(std::string(65, 'a'))).empty());
  CHECK(build_in({}).empty());
  CHECK(build_in(std::vector<std::byte>(100'000, std::byte{'#'})).empty());
}

TEST_CASE("build: headers and notes that lie lead nowhere") {
  const auto good = sim::program_file("0123456789abcdefghij");
  for (std::size_t cut = 0; cut < 300; ++cut) {
    const std::vector<std::byte> shorter(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut));
    const std::string found = build_in(shorter);
    CHECK((found.empty() || found == "0123456789abcdefghij"));
  }
  for (std::size_t at = 0; at < 300; ++at) {
    for (const std::byte bad : {std::byte{0}, std::byte{0x7f}, std::byte{0xff}}) {
      auto changed = good;
      changed[at] = bad;
      CHECK(build_in(changed).size() <= 64);
    }
  }
}

TEST_CASE("build: this program has one") {
  const auto storage = make_real_storage();
  std::string path(4096, '\0');
  path.resize(static_cast<std::size_t>(::readlink("/proc/self/exe", path.data(), path.size())));
  const auto file = storage->open(path, OpenMode::kRead);
  REQUIRE(file);
  CHECK(build_of(**file).size() >= 8);
}

}  // namespace pif::component
