#include "daemons/processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "command/io.h"

namespace pif::cli {
namespace {

constexpr std::size_t kProcessNameBytes = 15;  // of a program's name, in /proc/PID/comm
constexpr std::size_t kCommandLineBytes = 16384;

// Empty: it has ended, or is ending.
std::vector<std::string> words_of(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/cmdline", pid);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto text = fd ? read_some(fd.get(), 0, kCommandLineBytes, path) : Result<std::string>();
  std::vector<std::string> words;
  for (std::size_t at = 0; text && at < text->size();) {
    const std::size_t end = std::min(text->find('\0', at), text->size());
    words.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Whether this command line serves the daemon.
bool serves(const std::vector<std::string>& words, const Daemon& daemon) {
  const auto has = [&](const std::string& word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  return !words.empty() && daemon.arguments.size() > 1 &&
         std::all_of(daemon.arguments.begin() + 1, daemon.arguments.end(), has) && !has("init");
}

std::optional<pid_t> number_of(const std::filesystem::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(pid) : std::nullopt;
}

}  // namespace

std::vector<Stray> strays_of(const std::vector<Daemon>& daemons, uid_t owner) {
  std::vector<Stray> out;
  std::set<std::string> programs;  // few: most processes are known by their name
  for (const Daemon& daemon : daemons) programs.insert(program_of(daemon));
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const auto pid = number_of(entry);
    if (!pid) continue;
    const auto program = std::find_if(programs.begin(), programs.end(),
                                      [&](const std::string& name) { return runs_for(*pid, name, owner); });
    if (program == programs.end()) continue;
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    const std::vector<std::string> words = words_of(*pid);
    const auto daemon = std::find_if(daemons.begin(), daemons.end(), [&](const Daemon& one) {
      return program_of(one) == *program && serves(words, one);
    });
    if (process && daemon != daemons.end()) out.push_back({daemon->name, *pid, std::move(process)});
  }
  return out;
}

Result<std::string> read_some(int fd, off_t offset, std::size_t bytes, const std::string& name) {
  std::string text(bytes, '\0');
  if (::lseek(fd, offset, SEEK_SET) < 0) return fail_errno(errno, "cannot read " + name);
  PIF_TRY_VALUE(const std::size_t n, read_full(fd, std::as_writable_bytes(std::span(text)), name));
  text.resize(n);
  return text;
}

std::string program_of(const Daemon& daemon) { return std::filesystem::path(daemon.arguments[0]).filename().string(); }

bool runs_for(pid_t pid, const std::string& program, uid_t user) {
  const std::string folder = fmt::format("/proc/{}", pid);
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0 || about.st_uid != user) return false;
  UniqueFd fd(::open((folder + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  const auto name = read_some(fd.get(), 0, kProcessNameBytes + 1, folder);
  return name && *name == program.substr(0, kProcessNameBytes) + "\n";
}

}  // namespace pif::cli
