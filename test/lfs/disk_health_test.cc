// When an LFS says that its disk fails.
#include "pif/lfs/disk_health.h"

#include <catch2/catch.hpp>

#include "../sim/by_hand.h"
#include "pif/component/memory_storage.h"

namespace pif::lfs {
namespace {

using namespace std::chrono_literals;
using component::OpenMode;

Status failed(Code code, const std::string& text = "cannot do it") { return fail(code, text); }

struct Disk {
  Disk() {
    REQUIRE(memory->make_folder("/d"));
    REQUIRE(file().write(0, std::array<std::byte, 3>{}));
    inner->set_fault([this](std::string_view call, std::string_view) { return call == what ? code : Code::kOk; });
  }
  component::File& file() {
    if (!opened) opened = std::move(*storage->open("/d/f", OpenMode::kCreate));
    return *opened;
  }

  sim::FakeClock clock;
  DiskHealth health{clock};
  std::shared_ptr<component::MemoryDisk> inner = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> memory = component::make_memory_storage(inner);
  std::unique_ptr<component::Storage> storage = watch(*memory, health);
  std::unique_ptr<component::File> opened;
  std::string what;
  Code code = Code::kIo;
};

}  // namespace

TEST_CASE("a change that fails is a disk that fails, for good") {
  for (const Code code : {Code::kIo, Code::kReadOnly, Code::kPermission}) {
    sim::FakeClock clock;
    DiskHealth health(clock);
    CHECK(!health.trouble());
    health.note(DiskCall::kChange, "/d/f", 0, failed(code, "cannot sync /d/f: Input/output error"));
    CHECK(health.trouble() == "cannot sync /d/f: Input/output error");
    health.note(DiskCall::kChange, "/d/f", 0, {});
    clock.advance(24h);
    CHECK(health.trouble() == "cannot sync /d/f: Input/output error");
  }
}

TEST_CASE("a full disk, a missing file and what cannot be done here are no failures") {
  for (const Code code : {Code::kNoSpace, Code::kNotFound, Code::kUnsupported, Code::kBusy, Code::kExists}) {
    sim::FakeClock clock;
    DiskHealth health(clock);
    for (int i = 0; i < 100; ++i) {
      health.note(DiskCall::kChange, "/d/f", 0, failed(code));
      health.note(DiskCall::kRead, "/d/" + std::to_string(i), 0, failed(code));
    }
    CHECK(!health.trouble());
    CHECK(health.failed_reads() == 0);
    CHECK(!health.take_probe());
  }
}

TEST_CASE("a disk fails that cannot be read in many places within a minute, not one with a bad sector") {
  sim::FakeClock clock;
  DiskHealth health(clock);
  for (int i = 0; i < 1000; ++i) health.note(DiskCall::kRead, "/d/f", 4096 + i, failed(Code::kIo));
  CHECK(!health.trouble());
  CHECK(health.failed_reads() == 1000);
  CHECK(health.take_news());
  CHECK_FALSE(health.take_news());
  for (std::uint64_t i = 1; i + 1 < DiskHealth::kPlacesMax; ++i)
    health.note(DiskCall::kRead, "/d/f", i * DiskHealth::kPlaceBytes, failed(Code::kIo));
  CHECK(!health.trouble());
  health.note(DiskCall::kRead, "/d/g", 0, failed(Code::kIo));
  REQUIRE(health.trouble());
  clock.advance(DiskHealth::kReadsWithin + 1s);
  CHECK(!health.trouble());
  health.note(DiskCall::kRead, "/d/f", 0, failed(Code::kIo));
  CHECK(!health.trouble());
}

TEST_CASE("a call that is not answered is a disk that fails, until it is") {
  sim::FakeClock clock;
  DiskHealth health(clock);
  const auto read = health.begin(DiskCall::kRead, "/d/f");
  const auto sync = health.begin(DiskCall::kChange, "/d/g");
  clock.advance(DiskHealth::kReadMax);
  CHECK(!health.trouble());
  clock.advance(1s);
  CHECK(health.trouble() == "a read of /d/f has not been answered for 31 s");
  health.end(read, 0, {});
  CHECK(!health.trouble());
  clock.advance(DiskHealth::kChangeMax);
  CHECK(health.trouble());
  health.end(sync, 0, {});
  CHECK(!health.trouble());
}

TEST_CASE("after a read that failed somebody is to try a write, and not at each of many") {
  sim::FakeClock clock;
  clock.advance(1h);
  DiskHealth health(clock);
  CHECK(!health.take_probe());
  health.note(DiskCall::kRead, "/d/f", 0, failed(Code::kIo));
  CHECK(health.take_probe());
  CHECK(!health.take_probe());
  health.note(DiskCall::kRead, "/d/f", 0, failed(Code::kIo));
  CHECK(!health.take_probe());
  clock.advance(DiskHealth::kProbeEvery);
  CHECK(health.take_probe());
}

TEST_CASE("every call of a watched storage counts, and answers as before") {
  Disk disk;
  std::array<std::byte, 3> bytes{};
  SECTION("a read") {
    disk.what = "read";
    CHECK(!disk.file().read(0, std::span(bytes)));
    CHECK(disk.health.failed_reads() == 1);
    CHECK(!disk.health.trouble());
    disk.what.clear();
    CHECK(disk.file().read(0, std::span(bytes)).value() == 3);
  }
  SECTION("a read of what is in memory") {
    disk.what = "read";
    CHECK(!disk.file().read_cached(0, std::span(bytes)));
    CHECK(disk.health.failed_reads() == 1);
  }
  SECTION("a look at how long a file is, or how full the disk") {
    disk.what = "size";
    CHECK(!disk.file().size());
    disk.what = "space";
    CHECK(!disk.storage->space("/d"));
    CHECK(disk.health.failed_reads() == 2);
    CHECK(disk.health.take_probe());
  }
  SECTION("a sync") {
    disk.what = "sync";
    CHECK(!disk.file().sync());
    CHECK(disk.health.trouble());
  }
  SECTION("a write") {
    disk.what = "write";
    CHECK(!disk.file().write(0, bytes));
    CHECK(disk.health.trouble());
  }
  SECTION("one that finds the disk full") {
    disk.what = "write";
    disk.code = Code::kNoSpace;
    CHECK(!disk.file().write(0, bytes));
    CHECK(!disk.health.trouble());
  }
  SECTION("a folder's sync") {
    disk.what = "sync_folder";
    CHECK(!disk.storage->sync_folder("/d"));
    CHECK(disk.health.trouble());
  }
  SECTION("the making of a file on what the kernel has made read-only") {
    disk.what = "open";
    disk.code = Code::kReadOnly;
    CHECK(!disk.storage->open("/d/new", OpenMode::kCreate));
    CHECK(disk.health.trouble());
  }
  SECTION("a file of another LFS does not count") {
    auto handle = disk.file().share();
    REQUIRE(handle);
    auto other = disk.storage->adopt(std::move(*handle));
    REQUIRE(other);
    disk.what = "sync";
    CHECK(!(*other)->sync());
    CHECK(!disk.health.trouble());
  }
}

}  // namespace pif::lfs
