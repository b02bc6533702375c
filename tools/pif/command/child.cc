#include "command/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "command/io.h"
#include "pif/base/handle.h"

extern char** environ;

namespace pif::cli {
namespace {

constexpr std::size_t kOutputBytesMax = 16u << 20;
constexpr int kSignalled = 128;  // as a shell counts

// What the child gets as its streams; the signals that we only note end it.
class Plan {
 public:
  Plan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    ::posix_spawnattr_setsigdefault(&attributes_, &ours);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  void catch_output(int fd) {
    ::posix_spawn_file_actions_adddup2(&actions_, fd, 1);
    ::posix_spawn_file_actions_addopen(&actions_, 2, "/dev/null", O_WRONLY, 0);
  }
  int run(std::vector<std::string>& words, pid_t& pid) {
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string beside = program_folder() + "/" + words[0];
    const bool is_name = words[0].find('/') == std::string::npos;
    if (is_name && ::access(beside.c_str(), X_OK) == 0)
      return ::posix_spawn(&pid, beside.c_str(), &actions_, &attributes_, argv.data(), environ);
    return ::posix_spawnp(&pid, argv[0], &actions_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Result<std::string> read_all(int fd) {
  std::string text(kOutputBytesMax, '\0');
  PIF_TRY_VALUE(const std::size_t got, read_full(fd, std::as_writable_bytes(std::span(text)), "the program's output"));
  text.resize(got);
  return text;
}

Result<int> await(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno(errno, "cannot wait for a program");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace

Result<ChildEnd> run_child(std::vector<std::string> words, ChildOutput output) {
  Plan plan;
  UniqueFd ours, theirs;
  if (output == ChildOutput::kCatch) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
    plan.catch_output(theirs.get());
  }
  pid_t pid = 0;
  const int error = plan.run(words, pid);
  if (error == ENOENT) return fail(Code::kNotFound, fmt::format("there is no program {} here or in PATH", words[0]));
  if (error != 0) return fail_errno(error, "cannot run " + words[0]);
  theirs = UniqueFd();  // or the pipe would have no end
  ChildEnd end;
  auto text = output == ChildOutput::kCatch ? read_all(ours.get()) : std::string();
  ours = UniqueFd();
  PIF_TRY_VALUE(end.exit_code, await(pid));
  PIF_TRY_VALUE(end.output, std::move(text));
  return end;
}

}  // namespace pif::cli
