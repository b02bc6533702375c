#include "filter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pif::map {
namespace {

constexpr int kPipeBytes = 1 << 20;  // as much as the system gives without being asked for more
constexpr std::size_t kLastWordsMax = 1024;

// Ours does not wait; the command's does, as programs expect.
struct Pipe {
  UniqueFd ours, its;
};

Result<Pipe> make_pipe(bool is_its_input) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  Pipe pipe{UniqueFd(ends[is_its_input ? 1 : 0]), UniqueFd(ends[is_its_input ? 0 : 1])};
  (void)::fcntl(pipe.ours.get(), F_SETPIPE_SZ, kPipeBytes);  // without it it is slower
  if (::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno(errno, "cannot make a pipe");
  return pipe;
}

Result<pid_t> spawn(const std::string& command, const std::array<int, 3>& files) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, files[static_cast<std::size_t>(i)], i);
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::string shell = "sh", option = "-c", text = command;
  std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail_errno(failed, "cannot run /bin/sh");
  return pid;
}

std::string last_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace

Result<Filter> Filter::start(const std::string& command, Take out, Take err) {
  ::signal(SIGPIPE, SIG_IGN);  // a command that takes no more is no reason to end
  PIF_TRY_VALUE(Pipe input, make_pipe(true));
  PIF_TRY_VALUE(Pipe output, make_pipe(false));
  PIF_TRY_VALUE(Pipe words, make_pipe(false));
  PIF_TRY_VALUE(const pid_t pid, spawn(command, {input.its.get(), output.its.get(), words.its.get()}));
  return Filter(pid, std::move(input.ours), std::move(output.ours), std::move(words.ours), std::move(out),
                std::move(err));
}

Filter::Filter(pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err, Take take_out, Take take_err)
    : pid_(pid),
      in_(std::move(in)),
      out_(std::move(out)),
      err_(std::move(err)),
      take_out_(std::move(take_out)),
      take_err_(std::move(take_err)) {}

Filter::Filter(Filter&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      take_out_(std::move(other.take_out_)),
      take_err_(std::move(other.take_err_)) {}

Filter::~Filter() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Status Filter::drain(UniqueFd& from, const Take& take) {
  std::array<char, 64 << 10> piece;
  const ssize_t got = ::read(from.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return fail_errno(errno, "cannot read what the command writes");
  if (got == 0) {
    from.reset();
    return {};
  }
  const std::string_view text(piece.data(), static_cast<std::size_t>(got));
  if (&from == &err_) {
    last_words_ += text;
    last_words_.erase(0, last_words_.size() - std::min(last_words_.size(), kLastWordsMax));
  }
  return take(text);
}

Status Filter::turn(std::string_view& input) {
  std::vector<pollfd> all;
  const auto add = [&](const UniqueFd& fd, short events) {
    if (fd) all.push_back({fd.get(), events, 0});
  };
  if (!input.empty()) add(in_, POLLOUT);
  add(out_, POLLIN);
  add(err_, POLLIN);
  if (::poll(all.data(), all.size(), -1) < 0 && errno != EINTR) return fail_errno(errno, "cannot wait for the command");
  const auto is_ready = [&](const UniqueFd& fd) {
    for (const pollfd& one : all)
      if (fd && one.fd == fd.get() && one.revents != 0) return true;
    return false;
  };
  const bool takes = is_ready(in_), writes = is_ready(out_), speaks = is_ready(err_);
  if (takes) {
    const ssize_t went = ::write(in_.get(), input.data(), input.size());
    if (went >= 0)
      input.remove_prefix(static_cast<std::size_t>(went));
    else if (errno == EPIPE)
      in_.reset();
    else if (errno != EAGAIN && errno != EINTR)
      return fail_errno(errno, "cannot write to the command");
  }
  if (writes) PIF_TRY(drain(out_, take_out_));
  if (speaks) PIF_TRY(drain(err_, take_err_));
  return {};
}

Result<bool> Filter::feed(std::string_view input) {
  while (in_ && !input.empty()) PIF_TRY(turn(input));
  return static_cast<bool>(in_);
}

Status Filter::finish() {
  in_.reset();
  std::string_view nothing;
  while (out_ || err_) PIF_TRY(turn(nothing));
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string how = WIFSIGNALED(status) ? fmt::format("the command died of signal {} ({})", WTERMSIG(status),
                                                      strsignal(WTERMSIG(status)))
                                        : fmt::format("the command ended with exit code {}", WEXITSTATUS(status));
  if (const std::string words = last_line(last_words_); !words.empty()) how += ": " + words;
  return fail(Code::kCancelled, std::move(how));
}

}  // namespace pif::map
