#include "command/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "command/io.h"
#include "pif/base/handle.h"

extern char** environ;

namespace pif::cli {
namespace {

constexpr std::size_t kOutputBytesMax = 16u << 20;
constexpr std::size_t kTalkBytesMax = 1u << 20;
constexpr int kSignalled = 128;  // as a shell counts

// What the child gets as its streams. A signal that we note ends it, and one that is ignored here is ignored there.
class Plan {
 public:
  Plan() { ::posix_spawn_file_actions_init(&actions_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { ::posix_spawn_file_actions_destroy(&actions_); }
  void catch_output(int fd) {
    ::posix_spawn_file_actions_adddup2(&actions_, fd, 1);
    ::posix_spawn_file_actions_addopen(&actions_, 2, "/dev/null", O_WRONLY, 0);
  }
  void replace_streams(int in, int out, int errors) {
    ::posix_spawn_file_actions_adddup2(&actions_, in, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, errors, 2);
  }
  int run(std::vector<std::string>& words, pid_t& pid) {
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string beside = program_folder() + "/" + words[0];
    const bool is_name = words[0].find('/') == std::string::npos;
    if (is_name && ::access(beside.c_str(), X_OK) == 0)
      return ::posix_spawn(&pid, beside.c_str(), &actions_, nullptr, argv.data(), environ);
    return ::posix_spawnp(&pid, argv[0], &actions_, nullptr, argv.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
};

Result<std::string> read_all(int fd) {
  std::string text(kOutputBytesMax, '\0');
  PIF_TRY_VALUE(const std::size_t got, read_full(fd, std::as_writable_bytes(std::span(text)), "the program's output"));
  text.resize(got);
  return text;
}

// Our end of a stream of the child's, and the child's.
struct Stream {
  UniqueFd ours, theirs;
};
Result<Stream> make_stream() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno(errno, "cannot make a pair of sockets");
  return Stream{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Sends what there is room for; closes `to` after the last byte, or when nobody reads.
void send_some(UniqueFd& to, std::string_view& input) {
  const ssize_t sent = ::send(to.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) input.remove_prefix(static_cast<std::size_t>(sent));
  const bool is_over = sent < 0 && errno != EAGAIN && errno != EINTR;
  if (is_over || input.empty()) to.reset();
}

// Keeps what fits into `text`; closes `from` at its end.
void receive_some(UniqueFd& from, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) text.append(buffer.data(), std::min(static_cast<std::size_t>(got), kTalkBytesMax - text.size()));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) from.reset();
}

// Until both outputs have ended; false at the deadline.
bool talk(UniqueFd& in, UniqueFd& out, UniqueFd& errors, std::string_view input, ChildTalk& heard,
          std::chrono::steady_clock::time_point deadline) {
  if (input.empty()) in.reset();
  while (out || errors) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 3> waiting = {
        {{in ? in.get() : -1, POLLOUT, 0}, {out ? out.get() : -1, POLLIN, 0}, {errors ? errors.get() : -1, POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<decltype(left)>(left, 60'000)));
    if (waiting[0].revents != 0) send_some(in, input);
    if (waiting[1].revents != 0) receive_some(out, heard.output);
    if (waiting[2].revents != 0) receive_some(errors, heard.errors);
  }
  return true;
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

Result<ChildTalk> talk_to_child(std::vector<std::string> words, const std::string& input,
                                std::chrono::steady_clock::time_point deadline) {
  PIF_TRY_VALUE(Stream in, make_stream());
  PIF_TRY_VALUE(Stream out, make_stream());
  PIF_TRY_VALUE(Stream errors, make_stream());
  Plan plan;
  plan.replace_streams(in.theirs.get(), out.theirs.get(), errors.theirs.get());
  pid_t pid = 0;
  const int error = plan.run(words, pid);
  if (error == ENOENT) return fail(Code::kNotFound, fmt::format("there is no program {} here or in PATH", words[0]));
  if (error != 0) return fail_errno(error, "cannot run " + words[0]);
  for (Stream* stream : {&in, &out, &errors}) stream->theirs.reset();  // or the outputs would have no end
  ChildTalk heard;
  heard.was_late = !talk(in.ours, out.ours, errors.ours, input, heard, deadline);
  if (heard.was_late) ::kill(pid, SIGKILL);
  PIF_TRY_VALUE(heard.exit_code, await(pid));
  return heard;
}

}  // namespace pif::cli
