// What a daemon's log says at its end.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "daemons/daemons.h"
#include "daemons/processes.h"

namespace pif::cli {
namespace {

constexpr std::uint64_t kLogTailBytes = 4096;

// The lines of the log from `begin` on, of its last bytes; none is empty.
std::vector<std::string> last_lines(const Daemon& daemon, std::uint64_t begin) {
  std::vector<std::string> lines;
  const UniqueFd fd(::open(daemon.log().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return lines;
  const std::uint64_t size = log_size(daemon);
  const std::uint64_t start = std::max(begin, size > kLogTailBytes ? size - kLogTailBytes : 0);
  const auto text = read_some(fd.get(), static_cast<off_t>(start), kLogTailBytes, daemon.log());
  for (std::size_t at = 0; text && at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    if (end > at) lines.push_back(text->substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// "TIME NAME LEVEL: TEXT" (cluster::start_logging) of a level that is no error. Another line is a complaint of somebody
// who does not log: of the program before it does, or of what was to load it.
bool is_news(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return false;
  const std::string_view before = line.substr(0, colon);
  const auto has = [&](std::string_view level) { return before.ends_with(level); };
  return has(" trace") || has(" debug") || has(" info") || has(" warning");
}

}  // namespace

std::uint64_t log_size(const Daemon& daemon) {
  struct stat log {};
  return ::stat(daemon.log().c_str(), &log) == 0 ? static_cast<std::uint64_t>(log.st_size) : 0;
}

std::string last_log_line(const Daemon& daemon) {
  const std::vector<std::string> lines = last_lines(daemon, 0);
  return lines.empty() ? std::string() : lines.back();
}

std::string reason_of_end(const Daemon& daemon, std::uint64_t log_begin, int status) {
  if (WIFSIGNALED(status))
    return fmt::format("it was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  const std::vector<std::string> lines = last_lines(daemon, log_begin);
  const auto error = std::find_if(lines.rbegin(), lines.rend(), [](const auto& line) { return !is_news(line); });
  if (error != lines.rend()) return *error;
  return fmt::format("it ended with exit code {}{}{}", WEXITSTATUS(status),
                     lines.empty() ? "" : "; its log ends: ", lines.empty() ? "" : lines.back());
}

}  // namespace pif::cli
