// A tool whose worker does what no worker may, and reports what came of it: one line per attempt, "refused WHAT" or
// "DONE WHAT". security_test.py runs it.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/handle.h"
#include "pif/net/caller.h"
#include "pif/net/real_messenger.h"
#include "pif/tool/tool_main.h"

namespace {

using namespace pif;

constexpr int kForksMax = 10'000;
constexpr int kLfsSocket = 3;  // where a worker finds its connection
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;

struct Options {
  std::string attack;
  std::string input;
  std::string target;  // of attacks on paths and processes
} options;

class Report {
 public:
  // `done`: whether the attack has had its way; errno says why not.
  void add(bool done, const std::string& what) {
    const int error = errno;
    text_ += done ? fmt::format("DONE {}\n", what) : fmt::format("refused {}: {}\n", what, std::strerror(error));
  }
  void say(const std::string& line) { text_ += line + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool opens(const std::string& path, int flags) {
  return static_cast<bool>(UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, 0600)));
}

std::string link_of(const std::string& path) {
  char text[4096] = {};
  return ::readlink(path.c_str(), text, sizeof text - 1) < 0 ? "" : text;
}

void attack_descriptor(int fd, Report& report) {
  const std::string by_number = fmt::format("/proc/self/fd/{}", fd);
  const std::string path = link_of(by_number);
  report.add(opens(by_number, O_RDWR), "reopen for writing");
  report.add(opens(by_number, O_WRONLY | O_TRUNC), "reopen and truncate");
  report.add(opens(by_number, O_RDONLY), "reopen for reading");
  report.add(opens(path, O_RDWR), "open by path for writing");
  report.add(opens(path, O_RDONLY), "open by path for reading");
  report.add(::pwrite(fd, "x", 1, 0) == 1, "write to it");
  report.add(::ftruncate(fd, 0) == 0, "truncate it");
  report.add(::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED, "map it for writing");
  report.add(::fchmod(fd, 0666) == 0, "open it to others");
  report.add(::truncate(path.c_str(), 0) == 0, "truncate by path");
  report.add(::unlink(path.c_str()) == 0, "remove it");
}

// Descriptors that the LFS passed for reading.
Status attack_input(tool::Worker& worker, Report& report) {
  PIF_TRY_VALUE(tool::Input* const in, worker.input(0));
  if (!in->is_here()) return {};
  const UniqueFd all(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  unsigned found = 0;
  for (int fd = 4; fd < 64; ++fd) {
    struct stat is {};
    if (::fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) continue;
    attack_descriptor(fd, report);
    ++found;
  }
  report.say(fmt::format("descriptors {}", found));
  return {};
}

void attack_paths(Report& report) {
  std::istringstream paths(options.target);
  for (std::string path; std::getline(paths, path, ':');) {
    struct stat is {};
    const bool folder = ::stat(path.c_str(), &is) == 0 && S_ISDIR(is.st_mode);
    report.add(opens(path, O_RDONLY), "read " + path);
    // Only what is the test's own is written to and moved: where nothing stops this worker, the machine must survive
    // it.
    if (path.find("/pif-system-") == std::string::npos) continue;
    if (folder)
      report.add(opens(path + "/planted", O_CREAT | O_WRONLY), "make a file in " + path);
    else
      report.add(opens(path, O_WRONLY), "write " + path);
    report.add(::rename(path.c_str(), (path + "-moved").c_str()) == 0, "move " + path);
  }
}

// Until it is refused; the children wait to be killed.
void attack_forks(Report& report) {
  for (int count = 0; count < kForksMax; ++count) {
    const auto child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) {
      for (;;) ::pause();
    }
    if (child > 0) continue;
    report.add(false, fmt::format("more than {} processes", count));
    return;
  }
  report.add(true, fmt::format("{} processes", kForksMax));
}

void attack_memory(Report& report) {
  const auto machine =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t taken = 0; taken < machine; taken += kPieceBytes) {
    if (::mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
        MAP_FAILED)
      continue;
    report.add(false, fmt::format("more than {} MiB", taken >> 20));
    return;
  }
  report.add(true, "as much memory as the machine has");
}

void attack_process(pid_t pid, Report& report) {
  const std::string proc = fmt::format("/proc/{}", pid);
  rlimit none{0, 0};
  report.add(::kill(pid, SIGSTOP) == 0, "stop it");
  report.add(::kill(pid, SIGKILL) == 0, "kill it");
  report.add(::sigqueue(pid, SIGTERM, {}) == 0, "queue it a signal");
  report.add(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0, "trace it");
  report.add(opens(proc + "/mem", O_RDWR), "open its memory");
  report.add(opens(proc + "/environ", O_RDONLY), "read its environment");
  report.add(opens(proc + "/fd/0", O_RDONLY), "open its descriptors");
  report.add(::prlimit(pid, RLIMIT_NOFILE, &none, nullptr) == 0, "take its descriptors away");
}

void attack_kernel(Report& report) {
  report.add(::setsid() >= 0, "leave the session");
  report.add(::setpgid(0, 0) == 0, "leave the process group");
  report.add(::unshare(CLONE_NEWUSER) == 0, "become root of a new namespace");
  const auto child = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) ::raise(SIGKILL);
  report.add(child > 0, "start in a new namespace");
  report.add(static_cast<bool>(UniqueFd(::socket(AF_PACKET, SOCK_RAW, 0))), "open a raw socket");
  report.add(static_cast<bool>(UniqueFd(::socket(AF_ALG, SOCK_SEQPACKET, 0))), "open the kernel's ciphers");
  report.add(::syscall(SYS_io_uring_setup, 4, nullptr) >= 0 || errno == EFAULT, "open an io_uring");
  report.add(::getuid() != 0 && ::setuid(0) == 0, "become root");
  report.add(::setpriority(PRIO_PROCESS, 0, -5) == 0, "use root's powers");
}

// Through the socket to its LFS that it was born with, of which the kernel says that it is the LFS's own.
void attack_jobs(Report& report) {
  constexpr std::uint64_t kJob = 0xbad;
  auto messenger = net::make_real_messenger({});
  if (!messenger) return;
  auto lfs = (*messenger)->adopt(Handle{UniqueFd(::fcntl(kLfsSocket, F_DUPFD_CLOEXEC, 100)), nullptr});
  if (!lfs) return;
  net::Caller caller(**messenger, 1);
  const auto ask = [&](const std::string& what, net::Packet packet) {
    const auto answer = caller.call(*lfs, std::move(packet), std::chrono::seconds(5), "lfs");
    errno = EPERM;
    report.add(answer.has_value() || answer.error().code != Code::kPermission, what);
  };
  net::Packet spawn, wait;
  spawn.envelope.mutable_spawn()->set_job(kJob);
  spawn.envelope.mutable_spawn()->set_program("/usr/bin/id");
  spawn.envelope.mutable_spawn()->set_fan_out(1);
  ask("start a worker", std::move(spawn));
  wait.envelope.mutable_job_wait()->set_job(kJob);
  ask("begin a job", std::move(wait));
}

Status attack(tool::Worker& worker) {
  const auto value = std::string(worker.value());
  const auto bar = value.find('|');
  options.attack = value.substr(0, bar);
  options.target = value.substr(bar + 1);
  Report report;
  report.say(fmt::format("as {}", ::getuid()));
  if (options.attack == "input") PIF_TRY(attack_input(worker, report));
  if (options.attack == "paths") attack_paths(report);
  if (options.attack == "forks") attack_forks(report);
  if (options.attack == "memory") attack_memory(report);
  if (options.attack == "process") attack_process(::getppid(), report);
  if (options.attack == "kernel") attack_kernel(report);
  if (options.attack == "jobs") attack_jobs(report);
  worker.set_result(report.text());
  return {};
}

Result<tool::ExitCode> control(tool::Controller& controller) {
  if (!options.input.empty()) PIF_TRY(controller.open(options.input));
  PIF_TRY_VALUE(const auto results, controller.run({.value = options.attack + "|" + options.target}));
  for (const auto& result : results) fmt::print("{}", result);
  return tool::ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  tool::Tool tool;
  tool.name = "hostile-worker";
  tool.summary = "Does what no worker may, and says what came of it.";
  tool.options = [](CLI::App& app) {
    app.add_option("--attack", options.attack, "input, paths, forks, memory, process, kernel or jobs")->required();
    app.add_option("--input", options.input, "a file in the file system, for `input`");
    app.add_option("--target", options.target, "paths between colons, for `paths`");
  };
  tool.control = control;
  tool.work = attack;
  return tool::main(argc, argv, tool);
}
