// A mapped file that loses its pages, in a process of its own.
#include "../../libtool/src/memory/mapping.h"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "libtool/tool_fixtures.h"
#include "pif/base/handle.h"
#include "pif/tool/exit_code.h"
#include "pif/tool/scratch.h"

namespace pif::tool {
namespace {

using sim::must;

constexpr std::size_t kPage = 4096, kPages = 4;

UniqueFd file() {
  char path[] = "/tmp/pif-mapping-XXXXXX";
  UniqueFd fd(::mkstemp(path));
  REQUIRE(fd);
  REQUIRE(::unlink(path) == 0);
  REQUIRE(::ftruncate(fd.get(), kPage * kPages) == 0);
  return fd;
}

void cut(const UniqueFd& fd, std::size_t pages) {
  if (::ftruncate(fd.get(), static_cast<off_t>(pages * kPage)) != 0) std::abort();
}

volatile char touched;
void touch(std::span<const std::byte> bytes, std::size_t at) { touched = std::to_integer<char>(bytes[at]); }

struct Ended {
  int status = 0;
  std::string said;  // on stderr
  bool by_tool() const { return WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::kFailed); }
  bool by_bus_error() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS; }
};

// How a process ends that is a worker's and does this; it says "over" if it comes to the end of it.
Ended run(const std::function<void()>& f) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGBUS, SIG_DFL);  // sanitizers have a handler
    ::dup2(ends[1], STDERR_FILENO);
    end_process_at_lost_pages("a-tool");
    f();
    (void)!::write(STDERR_FILENO, "over", 4);
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended;
  char some[512];
  for (ssize_t n = 0; (n = ::read(ends[0], some, sizeof(some))) > 0;)
    ended.said.append(some, static_cast<std::size_t>(n));
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &ended.status, 0) == child);
  return ended;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a process that touches what was cut off a mapped file says which file and where, and ends as a tool fails") {
  const UniqueFd fd = file();
  const Ended ended = run([&] {
    const auto mapping = must(Mapping::make(fd.get(), kPage * kPages, false));
    touch(mapping->bytes(), 3 * kPage);
    cut(fd, 2);
    touch(mapping->bytes(), 2 * kPage - 1);  // this is there
    touch(mapping->bytes(), 3 * kPage + 5);
  });
  INFO(ended.said);
  CHECK(ended.by_tool());
  CHECK(contains(ended.said, "a-tool: /tmp/pif-mapping-"));
  CHECK(contains(ended.said, " ends before byte 12293, "));
  CHECK(ended.said.back() == '\n');
  CHECK(!contains(ended.said, "over"));
}

TEST_CASE("so it is on any thread, in a scratch file that is written, and with other files mapped and unmapped") {
  const Ended ended = run([] {
    UniqueFd fd = file();
    const UniqueFd other(::dup(fd.get())), others_file = file();
    Scratch scratch(Handle{std::move(fd), nullptr}, "lfs1");
    auto first = must(Mapping::make(others_file.get(), kPage, true)),
         second = must(Mapping::make(others_file.get(), kPage, true));
    must(scratch.allocate(kPage * kPages));
    auto last = must(Mapping::make(others_file.get(), kPage, true));
    second.reset();
    last.reset();
    first.reset();
    Scratch moved = std::move(scratch);
    cut(other, 0);
    std::thread([&] { moved.space()[kPage] = std::byte{1}; }).join();
  });
  INFO(ended.said);
  CHECK(ended.by_tool());
  CHECK(contains(ended.said, " ends before byte 4096, "));
}

TEST_CASE("a signal that somebody sent is ignored where it was, and lost pages are told of after it") {
  const UniqueFd fd = file();
  const Ended ended = run([&] {
    ::signal(SIGBUS, SIG_IGN);
    end_process_at_lost_pages("a-tool");
    const auto mapping = must(Mapping::make(fd.get(), kPage * kPages, false));
    ::kill(::getpid(), SIGBUS);
    cut(fd, 2);
    touch(mapping->bytes(), 3 * kPage);
  });
  INFO(ended.said);
  CHECK(ended.by_tool());
}

TEST_CASE("a fault elsewhere, or a signal that somebody sent, ends the process as it ever did") {
  const UniqueFd fd = file();
  for (const bool sent : {false, true}) {
    const Ended ended = run([&] {
      const auto mapping = must(Mapping::make(fd.get(), kPage, false));
      if (sent) ::kill(::getpid(), SIGBUS);
      void* const at = ::mmap(nullptr, kPage * kPages, PROT_READ, MAP_SHARED, fd.get(), 0);
      cut(fd, 1);
      touch({static_cast<const std::byte*>(at), kPage * kPages}, 2 * kPage);
    });
    INFO(ended.said);
    CHECK(ended.by_bus_error());
    CHECK(ended.said.empty());
  }
}

}  // namespace pif::tool
