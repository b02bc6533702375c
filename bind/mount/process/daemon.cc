#include "process/daemon.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;

namespace pif::mount {
namespace {

constexpr int kExitFailed = 3;
constexpr int kReportFd = 3;  // in the new process

}  // namespace

Result<int> start_in_background(int argc, char** argv) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  std::vector<std::string> words = {argv[0], "--report-to", std::to_string(kReportFd)};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), kReportFd);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::error_code none;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", none).string();  // it gives the name
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, &attributes, pointers.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail_errno(failed, "cannot start a process");
  writing.reset();
  unsigned char exit_code = kExitFailed;  // it died without a word
  while (::read(reading.get(), &exit_code, 1) < 0 && errno == EINTR) {
  }
  return exit_code;
}

void report_to(UniqueFd starter, int exit_code) {
  if (exit_code == 0) {
    const UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (int stream = 0; nowhere && stream < 3; ++stream) ::dup2(nowhere.get(), stream);
    if (::chdir("/") != 0) return;  // and the starter hears of a failure
  }
  const auto byte = static_cast<unsigned char>(exit_code);
  while (::write(starter.get(), &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace pif::mount
