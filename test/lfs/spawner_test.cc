// Real processes: how they are started, what is kept of their last words, how they end, and what starting one takes.
#include "pif/lfs/real_spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

namespace pif::lfs::test {
namespace {

// A program in place of pif-exec, which gets the same arguments.
class Helper {
 public:
  explicit Helper(const std::string& commands) {
    REQUIRE(::mkdtemp(folder_.data()) != nullptr);
    std::ofstream(path()) << "#!/bin/sh\n" << commands << "\n";
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  ~Helper() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/helper"; }

 private:
  std::string folder_ = "/tmp/pif-spawner-XXXXXX";
};

Spawner::Order order() {
  Spawner::Order out;
  out.program = "/bin/tool";
  out.arguments = {"-v", "two words"};
  return out;
}

WorkerExit wait_for(Spawner& spawner, Spawner::ProcessId process) {
  for (int i = 0; i < 10'000; ++i) {
    if (auto exit = spawner.exited(process)) return std::move(*exit);
    ::poll(nullptr, 0, 1);
  }
  FAIL("process " << process << " does not end");
  return {};
}

// What the helper printed, and how it ended.
WorkerExit run(const std::string& helper, const Spawner::Order& what) {
  const auto spawner = make_real_spawner(helper);
  const auto started = spawner->start(what);
  REQUIRE(started);
  return wait_for(*spawner, started->process);
}

// Of the descriptors below 16 so many are free, and there are none from `limit` on.
class Descriptors {
 public:
  Descriptors(int free, rlim_t limit) {
    while (true) {
      const int fd = ::dup(STDOUT_FILENO);
      REQUIRE(fd >= 0);
      if (fd >= 16) {
        ::close(fd);
        break;
      }
      taken_.push_back(fd);
    }
    for (; free > 0; --free) {
      REQUIRE(!taken_.empty());
      ::close(taken_.back());
      taken_.pop_back();
    }
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lower{limit, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~Descriptors() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    for (const int fd : taken_) ::close(fd);
  }

 private:
  std::vector<int> taken_;
  rlimit before_{};
};

// What comes next over a worker's connection; nothing when nobody has its other end.
std::string hear(const Handle& connection) {
  std::array<char, 16> heard{};
  pollfd readable{connection.fd.get(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, 10'000) == 1);
  const ssize_t got = ::recv(connection.fd.get(), heard.data(), heard.size(), 0);
  REQUIRE(got >= 0);
  return {heard.data(), static_cast<std::size_t>(got)};
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

}  // namespace

TEST_CASE("a worker's program is run through the helper, as its user if the LFS is root") {
  Spawner::Order ordered = order();
  ordered.uid = 1001;
  ordered.gids = {1001, 27};
  const auto exit = run("/bin/echo", ordered);
  CHECK_FALSE(exit.by_signal);
  CHECK(exit.value == 0);
  const std::string who = ::geteuid() == 0 ? "1001 1001,27" : "- -";
  CHECK(exit.last_words == fmt::format("{} {} - / - /bin/tool -v two words\n", ::getpid(), who));

  ordered.uid = 0;
  ordered.scratch_folder = "/run/pif/w1-0";
  ordered.working_folder = "/home/anna";
  CHECK(run("/bin/echo", ordered).last_words ==
        fmt::format("{} - - /run/pif/w1-0 /home/anna - /bin/tool -v two words\n", ::getpid()));
}

TEST_CASE("what workers are given, and kept from, comes before all else; what none asks for does not") {
  Spawner::Order ordered = order();
  ordered.rules.kept_away = {"/fs/keys"};
  CHECK(run("/bin/echo", ordered).last_words.find("keys") == std::string::npos);
  ordered.grants = {{"/data", false}, {"/out", true}};
  ordered.rules.memory_bounded = false;
  CHECK(run("/bin/echo", ordered).last_words ==
        fmt::format("--any-memory --read /data --write /out --keep-away /fs/keys {} - - - / - /bin/tool -v two words\n",
                    ::getpid()));
}

TEST_CASE("what a helper says over descriptor 4 tells whether the program is there") {
  const auto begun = [](const std::string& commands) {
    const Helper helper(commands);
    const auto spawner = make_real_spawner(helper.path());
    Spawner::Order ordered = order();
    ordered.build = "\x01\xab";
    auto started = spawner->start(ordered);
    REQUIRE(started);
    auto found = spawner->begun(started->process);
    for (int i = 0; i < 10'000 && found == Spawner::Begun::kPending; ++i, found = spawner->begun(started->process))
      ::poll(nullptr, 0, 1);
    CHECK(spawner->begun(started->process) == Spawner::Begun::kRuns);  // it is asked for once
    started->connection.fd.reset();
    CHECK(wait_for(*spawner, started->process).last_words == "01ab\n");
    return found;
  };
  CHECK(begun("echo $6; printf L >&4; exit 126") == Spawner::Begun::kLacks);
  CHECK(begun("echo $6; exec 4>&-; exec cat <&3") == Spawner::Begun::kRuns);
  CHECK(begun("echo $6; exit 127") == Spawner::Begun::kRuns);
}

TEST_CASE("a stored program is at descriptor 5, to be run by whoever has it") {
  const auto run_with = [](const Handle* stored) {
    Spawner::Order ordered = order();
    ordered.build = "b";
    ordered.stored = stored;
    const Helper helper("test -e /proc/self/fd/5 && test -x /proc/self/fd/5 && cat <&5");
    return run(helper.path(), ordered).last_words;
  };
  const Helper program("the program");
  std::filesystem::permissions(program.path(), std::filesystem::perms::owner_read);
  Handle stored;
  stored.fd = UniqueFd(::open(program.path().c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(run_with(&stored) == "#!/bin/sh\nthe program\n");
  CHECK(run_with(nullptr).empty());
  CHECK((std::filesystem::status(program.path()).permissions() & std::filesystem::perms::others_exec) !=
        std::filesystem::perms::none);
}

TEST_CASE("workers are told where they may listen for those of other machines, if they may") {
  const Helper helper("echo \"listen=${PIF_WORKER_LISTEN-nowhere}\"");
  for (const char* where : {"tcp://10.0.0.1:7500-7999", ""}) {
    const auto spawner = make_real_spawner(helper.path(), where);
    const auto started = spawner->start(order());
    REQUIRE(started);
    CHECK(wait_for(*spawner, started->process).last_words ==
          fmt::format("listen={}\n", *where == '\0' ? "nowhere" : where));
  }
}

TEST_CASE("a worker sees of the environment what it may, and speaks over descriptor 3") {
  ::setenv("PIF_SECRET", "key", 1);
  ::setenv("TZ", "UTC", 1);
  ::unsetenv("LC_ALL");
  const Helper helper(
      "echo \"secret=$PIF_SECRET zone=$TZ language=${LC_ALL-none} waits=$OMP_WAIT_POLICY\"; printf hello >&3; exit 3");
  const auto spawner = make_real_spawner(helper.path());
  auto started = spawner->start(order());
  REQUIRE(started);
  CHECK(hear(started->connection) == "hello");
  const auto exit = wait_for(*spawner, started->process);
  CHECK(exit.value == 3);
  CHECK_FALSE(exit.by_signal);
  CHECK(exit.last_words == "secret= zone=UTC language=none waits=passive\n");
}

TEST_CASE("the end of a worker's words is kept") {
  const Helper helper("i=0; while [ $i -lt 900 ]; do echo \"line $i\"; i=$((i+1)); done; echo the end >&2");
  const auto exit = run(helper.path(), order());
  CHECK(exit.last_words.size() == 4096);
  CHECK(exit.last_words.ends_with("line 899\nthe end\n"));
}

TEST_CASE("a worker that says more than anybody reads goes on") {
  const Helper helper("head -c 1000000 /dev/zero; printf on >&3");
  const auto spawner = make_real_spawner(helper.path());
  const auto started = spawner->start(order());
  REQUIRE(started);
  CHECK(hear(started->connection) == "on");
  CHECK(wait_for(*spawner, started->process).last_words.size() <= 4096);
}

TEST_CASE("a worker is killed with its children, and the children of one that ended too") {
  const Helper helper("cat <&3 & printf ready >&3; [ \"$7\" = /bin/ends ] || wait");
  for (const bool ends : {false, true}) {
    const auto spawner = make_real_spawner(helper.path());
    Spawner::Order ordered = order();
    if (ends) ordered.program = "/bin/ends";
    const auto started = spawner->start(ordered);
    REQUIRE(started);
    REQUIRE(hear(started->connection) == "ready");
    if (!ends) {
      CHECK_FALSE(spawner->exited(started->process));
      spawner->kill(started->process);
    }
    const auto exit = wait_for(*spawner, started->process);
    CHECK(exit.by_signal == !ends);
    CHECK(exit.value == (ends ? 0 : SIGKILL));
    CHECK(hear(started->connection).empty());  // nobody has the other end
  }
}

TEST_CASE("a spawner that goes kills what it started; what it does not know has ended, and nobody is killed for it") {
  const Helper helper("cat <&3");
  pid_t pid = 0;
  {
    const auto spawner = make_real_spawner(helper.path());
    const auto started = spawner->start(order());
    REQUIRE(started);
    pid = static_cast<pid_t>(started->process);
    CHECK(is_alive(pid));
    spawner->kill(::getpid());
    CHECK(spawner->exited(::getpid()));
  }
  CHECK_FALSE(is_alive(pid));
}

TEST_CASE("a helper that is not there is an error that names it") {
  const auto spawner = make_real_spawner("/nowhere/pif-exec");
  const auto failed = spawner->start(order());
  REQUIRE(!failed);
  CHECK(failed.error().code == Code::kNotFound);
  CHECK(failed.error().text.find("/nowhere/pif-exec") != std::string::npos);
}

TEST_CASE("a worker is not started without its descriptors, and none is lost") {
  const auto spawner = make_real_spawner("/bin/echo");
  const auto start = [&](int free, rlim_t limit) {
    const Descriptors few(free, limit);
    auto started = spawner->start(order());
    return started ? std::string() : started.error().text;
  };
  CHECK(start(1, 16).find("cannot make a worker's socket") != std::string::npos);
  CHECK(start(4, 16).find("cannot start a worker") != std::string::npos);
  CHECK(start(2, 17).find("cannot make a worker's stderr") != std::string::npos);
  CHECK(start(4, 17).find("cannot start a worker") != std::string::npos);
  CHECK(start(4, 20).empty());
}

}  // namespace pif::lfs::test
