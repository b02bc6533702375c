// Parts of tools/ that meet the local machine: new files, headers, locks.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../../tools/pif/command/io.h"
#include "../../tools/pif/daemons/daemons.h"
#include "../../tools/pif/transfer/header.h"
#include "pif/base/write_all.h"

using namespace pif;
using namespace pif::cli;
namespace fs = std::filesystem;

namespace {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "pif-tools-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempFolder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::size_t entries() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), {})); }

 private:
  std::string path_;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file with this text, open, and what is left of it behind the header.
struct Headed {
  TempFolder folder;
  UniqueFd fd;
  explicit Headed(const std::string& text) {
    write_text(folder / "f", text);
    fd = UniqueFd(::open((folder / "f").c_str(), O_RDONLY | O_CLOEXEC));
  }
  Result<Header> read(std::string_view kind) { return read_header(fd.get(), kind, "f"); }
  std::string rest() {
    std::string out(100, '\0');
    out.resize(*read_full(fd.get(), std::as_writable_bytes(std::span(out)), "f"));
    return out;
  }
};

}  // namespace

TEST_CASE("a new file appears under its name only when it is published") {
  TempFolder folder;
  const std::string whole = "whole";
  {
    auto file = NewFile::create(folder / "a", 0644);
    REQUIRE(file);
    REQUIRE(write_all(file->fd(), bytes_of(whole), "a"));
    CHECK_FALSE(fs::exists(folder / "a"));
    REQUIRE(file->publish(false));
  }
  CHECK(text_of(folder / "a") == "whole");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a new file that is not published leaves nothing") {
  TempFolder folder;
  { REQUIRE(NewFile::create(folder / "a", 0644)); }
  CHECK(folder.entries() == 0);
}

TEST_CASE("publishing replaces what is there, or refuses to and leaves it") {
  TempFolder folder;
  write_text(folder / "a", "old");
  {
    auto file = NewFile::create(folder / "a", 0644);
    const Status kept = file->publish(true);
    REQUIRE_FALSE(kept);
    CHECK(kept.error().code == Code::kExists);
  }
  CHECK(text_of(folder / "a") == "old");
  auto file = NewFile::create(folder / "a", 0644);
  REQUIRE(file->publish(false));
  CHECK(text_of(folder / "a").empty());
  CHECK(folder.entries() == 1);
}

TEST_CASE("a header of N bytes is what stands before the records") {
  Headed file("headRECORDS");
  const auto header = file.read("4");
  REQUIRE(header);
  CHECK(header->bytes == "head");
  CHECK(file.rest() == "RECORDS");
}

TEST_CASE("a PBM header ends before the rows, comments included, and says how long they are") {
  Headed file("P4\n# by hand\n17 2\nROWSRO");
  const auto header = file.read("pbm");
  REQUIRE(header);
  CHECK(header->bytes == "P4\n# by hand\n17 2\n");
  CHECK(header->record_length == 3);
  CHECK(header->rows == 2);
  CHECK(file.rest() == "ROWSRO");
}

TEST_CASE("what is behind a PBM header is as long as it says, and nothing else is known of other headers") {
  const auto header = Headed("P4\n17 2\nROWSRO").read("pbm");
  REQUIRE(header);
  CHECK(header->check_data(6, "f"));
  for (const std::uint64_t bytes : {0, 3, 5, 7, 12})
    CHECK(header->check_data(bytes, "f").error().code == Code::kCorrupt);
  CHECK(Headed("P4\n17 0\n").read("pbm")->check_data(0, "f"));
  CHECK(Headed("headRECORDS").read("4")->check_data(99, "f"));
}

TEST_CASE("a BED header is its magic number") {
  Headed file("\x6c\x1b\x01rows");
  CHECK(file.read("bed")->bytes.size() == 3);
  CHECK(file.rest() == "rows");
}

TEST_CASE("headers that are not there are refused") {
  CHECK(Headed("P1\n1 1\n0").read("pbm").error().code == Code::kCorrupt);
  CHECK(Headed("P4\nx").read("pbm").error().code == Code::kCorrupt);
  CHECK(Headed("P4\n99999999999999999999 1\n").read("pbm").error().code == Code::kCorrupt);
  CHECK(Headed("P4\n0 1\n").read("pbm").error().code == Code::kUnsupported);
  CHECK(Headed("abc").read("bed").error().code == Code::kCorrupt);
  CHECK(Headed("abc").read("4").error().code == Code::kCorrupt);
  CHECK(Headed("abc").read("png").error().code == Code::kInvalid);
  CHECK(Headed("abc").read("65536").error().code == Code::kInvalid);
}

TEST_CASE("a daemon runs while its lock is held, whatever the lock file says") {
  TempFolder folder;
  const Daemon daemon{"lfs0", folder / "lfs0", {"/bin/false"}};
  CHECK_FALSE(holder(daemon)->has_value());
  fs::create_directory(folder / "lfs0");
  write_text(daemon.lock(), "4711\n");
  CHECK_FALSE(holder(daemon)->has_value());
  UniqueFd lock(::open(daemon.lock().c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(*holder(daemon) == 4711);
}

TEST_CASE("stopping what does not run stops nothing") {
  TempFolder folder;
  const auto stopped = stop({{"lfs0", folder / "lfs0", {"/bin/false"}}}, ::geteuid(), std::chrono::milliseconds(0));
  REQUIRE(stopped);
  CHECK(stopped->asked.empty());
}

TEST_CASE("whoever a lock names is sent no signal unless it is the daemon") {
  TempFolder folder;
  fs::create_directory(folder / "lfs0");
  const Daemon daemon{"lfs0", folder / "lfs0", {"/bin/false"}};
  UniqueFd lock(::open(daemon.lock().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  for (const std::string& number :
       {std::to_string(::getpid()), std::string("0"), std::string("4294967295"), std::string("x")}) {
    write_text(daemon.lock(), number + "\n");
    const auto stopped = stop({daemon}, ::geteuid(), std::chrono::milliseconds(0));  // would end this test
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().code == Code::kPermission);
    CHECK(stopped.error().text.find(daemon.lock()) != std::string::npos);
  }
}

TEST_CASE("the last line of a log explains a failed start") {
  TempFolder folder;
  fs::create_directory(folder / "lfs0");
  const Daemon daemon{"lfs0", folder / "lfs0", {"/bin/false"}};
  CHECK(last_log_line(daemon).empty());
  write_text(daemon.log(), "first\nthe root is in use\n\n");
  CHECK(last_log_line(daemon) == "the root is in use");
}

TEST_CASE("why a daemon has ended: its signal, its last error since it was started, or its exit code") {
  constexpr int kExit0 = 0, kExit3 = 3 << 8, kKilled = 9;  // as waitpid() gives them
  TempFolder folder;
  fs::create_directory(folder / "lfs0");
  const Daemon daemon{"lfs0", folder / "lfs0", {"/bin/false"}};
  CHECK(reason_of_end(daemon, 0, kExit3) == "it ended with exit code 3");
  const std::string earlier = "2026-01-01T00:00:00.000+00:00 lfs0 error: an earlier run's\n";
  const std::string error = "2026-01-01T00:00:01.000+00:00 lfs0 error: the disk: is full\n";
  const std::string news = "2026-01-01T00:00:02.000+00:00 lfs0 info: lfs0 stops\n";
  const std::string warning = "2026-01-01T00:00:02.000+00:00 lfs0 warning: the server is silent\n";
  write_text(daemon.log(), earlier + error + warning + news);
  CHECK(reason_of_end(daemon, 0, kKilled) == "it was killed by signal 9 (Killed)");
  CHECK(reason_of_end(daemon, 0, kExit3) + "\n" == error);
  CHECK(reason_of_end(daemon, earlier.size() + error.size(), kExit0) ==
        "it ended with exit code 0; its log ends: " + news.substr(0, news.size() - 1));
  write_text(daemon.log(), news + "/bin/false: error while loading shared libraries: libx.so\n");
  CHECK(reason_of_end(daemon, 0, kExit3) == "/bin/false: error while loading shared libraries: libx.so");
}
