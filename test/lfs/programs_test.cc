// Programs that controllers brought: who gets which, what is refused, and what makes room.
#include "../../lfs/src/workers/programs.h"

#include <catch2/catch.hpp>

#include "pif/component/build.h"
#include "pif/component/memory_storage.h"
#include "sim/program_file.h"
#include "sim/world.h"

namespace pif::lfs::test {
namespace {

using sim::program_file;

class HandClock final : public Clock {
 public:
  Time now() const override { return time; }
  std::int64_t wall_seconds() const override { return 0; }
  Time time{};
};

struct Fixture {
  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> storage = component::make_memory_storage(disk);
  HandClock clock;
  Programs programs{*storage, clock, "/lfs0/programs"};

  Status bring(std::uint32_t uid, const std::string& build, const std::vector<std::byte>& bytes,
               std::size_t part = 1000) {
    PIF_TRY_VALUE(const auto arrival, programs.begin(uid, build, bytes.size()));
    for (std::size_t at = 0; at < bytes.size(); at += part) {
      const auto some = std::span(bytes).subspan(at, std::min(part, bytes.size() - at));
      PIF_TRY(programs.add(*arrival, at, some));
    }
    clock.time += std::chrono::seconds(1);
    return {};
  }
  // What find() gives, as text; empty if nothing.
  std::string found(std::uint32_t uid, const std::string& build) {
    auto handle = programs.find(uid, build);
    if (!handle) return {};
    auto file = storage->adopt(std::move(*handle));
    REQUIRE(file);
    std::string text((*file)->size().value(), '\0');
    REQUIRE((*file)->read(0, std::as_writable_bytes(std::span(text))));
    return text;
  }
  std::size_t files() const { return disk->files("/lfs0/programs").size(); }
};

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Code code_of(const Status& status) { return status ? Code::kOk : status.error().code; }

}  // namespace

TEST_CASE("programs: what was brought is found by its user and build, whole") {
  Fixture f;
  const auto bytes = program_file("build-a", 10'500);
  REQUIRE(f.bring(1000, "build-a", bytes));
  CHECK(f.found(1000, "build-a") == text_of(bytes));
  CHECK(f.found(1000, "build-b").empty());
  CHECK(f.found(1000, "").empty());
}

TEST_CASE("programs: what one user brought under a build id is not run for another one") {
  Fixture f;
  const auto evil = program_file("build-a", 4096, 'e');
  const auto good = program_file("build-a", 4096, 'g');
  REQUIRE(f.bring(1001, "build-a", evil));
  CHECK(f.found(1002, "build-a").empty());
  REQUIRE(f.bring(1002, "build-a", good));
  CHECK(f.found(1001, "build-a") == text_of(evil));
  CHECK(f.found(1002, "build-a") == text_of(good));
}

TEST_CASE("programs: two users who bring the same bytes share a file") {
  Fixture f;
  const auto bytes = program_file("build-a");
  REQUIRE(f.bring(1001, "build-a", bytes));
  REQUIRE(f.bring(1002, "build-a", bytes));
  CHECK(f.files() == 1);
  CHECK(f.found(1001, "build-a") == f.found(1002, "build-a"));
}

TEST_CASE("programs: another build than was said, and parts that do not follow, are refused and leave nothing") {
  Fixture f;
  CHECK(code_of(f.bring(1000, "build-a", program_file("build-b"))) == Code::kInvalid);
  CHECK(code_of(f.bring(1000, "build-a", std::vector<std::byte>(4096))) == Code::kInvalid);
  {
    auto arrival = f.programs.begin(1000, "build-a", 4096);
    REQUIRE(arrival);
    const auto bytes = program_file("build-a");
    CHECK(code_of(f.programs.add(**arrival, 1, std::span(bytes).first(10))) == Code::kInvalid);
    REQUIRE(f.programs.add(**arrival, 0, std::span(bytes).first(10)));
    CHECK(code_of(f.programs.add(**arrival, 0, std::span(bytes).first(10))) == Code::kInvalid);
    CHECK(code_of(f.programs.add(**arrival, 10, bytes)) == Code::kInvalid);  // more than was said
    CHECK(f.found(1000, "build-a").empty());                                 // it is not whole
    CHECK(f.files() == 1);
  }
  CHECK(f.files() == 0);
}

TEST_CASE("programs: one that is too long, and too many at once, are refused before anything is written") {
  Fixture f;
  const auto too_long = f.programs.begin(1000, "a", kProgramBytesMax + 1);
  REQUIRE(!too_long);
  CHECK(too_long.error().code == Code::kTooLarge);
  std::vector<std::unique_ptr<Programs::Arrival>> coming;
  for (std::uint64_t bytes = 0; bytes < kUserProgramsMax; bytes += kProgramBytesMax) {
    auto arrival = f.programs.begin(1000, "a", kProgramBytesMax);
    REQUIRE(arrival);
    coming.push_back(std::move(*arrival));
  }
  CHECK(f.programs.begin(1000, "a", 1).error().code == Code::kBusy);
  CHECK(f.programs.begin(1001, "a", 1));
  coming.pop_back();
  CHECK(f.programs.begin(1000, "a", kProgramBytesMax));
}

TEST_CASE("programs: where there are too many those go that were not used for longest") {
  Fixture f;
  for (std::size_t i = 0; i < kProgramsMax; ++i)
    REQUIRE(f.bring(1000, "b" + std::to_string(i), program_file("b" + std::to_string(i))));
  CHECK(f.files() == kProgramsMax);
  CHECK(!f.found(1000, "b0").empty());  // used now
  REQUIRE(f.bring(1000, "new", program_file("new")));
  CHECK(f.files() == kProgramsMax);
  CHECK(!f.found(1000, "b0").empty());
  CHECK(f.found(1000, "b1").empty());
  CHECK(!f.found(1000, "new").empty());
}

TEST_CASE("programs: together they take so much room and no more") {
  Fixture f;
  constexpr std::size_t kOne = 48u << 20;
  for (const char* build : {"b0", "b1"}) REQUIRE(f.bring(1000, build, program_file(build, kOne), 1u << 20));
  std::vector<std::unique_ptr<Programs::Arrival>> coming;
  for (std::uint32_t uid = 1; coming.size() * kProgramBytesMax < kProgramsBytesMax; ++uid) {
    auto arrival = f.programs.begin(uid, "a", kProgramBytesMax);
    REQUIRE(arrival);
    coming.push_back(std::move(*arrival));
  }
  CHECK(f.found(1000, "b0").empty());
  CHECK(f.found(1000, "b1").empty());
  CHECK(f.programs.begin(77, "a", 1).error().code == Code::kBusy);
}

TEST_CASE("programs: a full disk is an error, and one whose file somebody removed is brought again") {
  Fixture f;
  const auto bytes = program_file("build-a");
  f.disk->set_fault(
      [](std::string_view call, std::string_view) { return call == "write" ? Code::kNoSpace : Code::kOk; });
  CHECK(code_of(f.bring(1000, "build-a", bytes)) == Code::kNoSpace);
  f.disk->set_fault({});
  CHECK(f.files() == 0);
  REQUIRE(f.bring(1000, "build-a", bytes));
  REQUIRE(f.storage->remove(f.disk->files("/lfs0/programs").at(0)));
  CHECK(f.found(1000, "build-a").empty());
  REQUIRE(f.bring(1000, "build-a", bytes));
  CHECK(f.found(1000, "build-a") == text_of(bytes));
}

}  // namespace pif::lfs::test
