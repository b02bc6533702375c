#include "workers/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace pif::lfs {
namespace {

constexpr std::size_t kLastWordsMax = 4096;     // bytes of stdout and stderr that are kept: the end
constexpr std::size_t kSaidMax = 1u << 20;      // that wait to be given; what comes beyond is counted only
constexpr std::size_t kPipeBytes = 256u << 10;  // of those that are not polled yet; a user may have 64 MiB of pipes
constexpr int kWorkerSocket = 3;                // where a worker finds its connection (libtool knows it too)
// pif-exec knows these: where it says that the program is not there, and what is run then.
constexpr int kBegunPipe = 4;
constexpr int kStoredProgram = 5;

// Keeps what comes out of a non-blocking pipe: what nobody has taken yet, and the end of all. A worker that writes
// faster than it is polled loses words, never time: its end of the pipe does not block either.
class Words {
 public:
  explicit Words(UniqueFd pipe) : pipe_(std::move(pipe)) {
    (void)::fcntl(pipe_.get(), F_SETPIPE_SZ, static_cast<int>(kPipeBytes));  // else it has room for 64 KiB
  }

  void drain() {
    std::array<char, 16384> piece;
    for (std::size_t i = 0; i < 2 * kPipeBytes / piece.size(); ++i) {  // at most two pipes full
      const ssize_t got = ::read(pipe_.get(), piece.data(), piece.size());
      if (got <= 0) break;
      add({piece.data(), static_cast<std::size_t>(got)});
    }
  }
  // Whole lines, or what is as long as that.
  std::string take(std::size_t bytes) {
    drain();
    std::size_t end = said_.rfind('\n', bytes - 1);
    end = end != std::string::npos ? end + 1 : said_.size() > bytes ? bytes : 0;
    std::string lines = said_.substr(0, end);
    said_.erase(0, end);
    if (said_.empty()) lines += say_left_out();
    return lines;
  }
  std::string take_all() {
    drain();
    std::string all = std::exchange(said_, {});
    return all + say_left_out();
  }
  std::string last() const { return end_; }

 private:
  void add(std::string_view piece) {
    end_ += piece;
    if (end_.size() > kLastWordsMax) end_.erase(0, end_.size() - kLastWordsMax);
    const std::size_t room = left_out_ > 0 ? 0 : kSaidMax - std::min(said_.size(), kSaidMax);
    const std::string_view kept = piece.substr(0, room);
    said_ += kept;
    left_out_ += piece.size() - kept.size();
  }
  std::string say_left_out() {
    if (left_out_ == 0) return {};
    return fmt::format("\n[{} bytes were left out here]\n", std::exchange(left_out_, 0));
  }

  UniqueFd pipe_;
  std::string said_, end_;
  std::uint64_t left_out_ = 0;  // behind said_
};

struct SpawnActions {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnActions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnActions() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  // stdin from nowhere, stdout and stderr into `words`, the connection at kWorkerSocket. `words` and `socket` are above
  // kWorkerSocket, so no dup2 below runs over one that is still needed.
  void set_files(int words, int socket) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, words, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket, kWorkerSocket);
  }
  // Both above kStoredProgram; -1: there is none, also if this process was born with something there.
  void set_program(int begun, int stored) {
    for (const auto& [from, to] : {std::pair(begun, kBegunPipe), std::pair(stored, kStoredProgram)}) {
      if (from >= 0)
        posix_spawn_file_actions_adddup2(&actions, from, to);
      else
        posix_spawn_file_actions_addclose(&actions, to);
    }
  }
  void set_signals_and_group() {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
};

// A descriptor well above those that a child gets.
Result<UniqueFd> raise(int fd) {
  const UniqueFd low(fd);
  UniqueFd high(::fcntl(low.get(), F_DUPFD_CLOEXEC, 16));
  if (!high) return fail_errno(errno, "cannot start a worker");
  return high;
}

// Of the daemon's environment, what a worker may see: the daemon may run as another user, with secrets in its own.
std::vector<std::string> worker_environment(const std::string& worker_listen, const WorkerRules& rules) {
  constexpr std::array kNames = {"PATH", "LANG", "LC_ALL", "TZ", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};
  std::vector<std::string> variables;
  for (const char* const name : kNames) {
    if (const char* const value = std::getenv(name)) variables.push_back(fmt::format("{}={}", name, value));
  }
  // Workers trace nobody, not even themselves, as a look for leaks would.
  if (!rules.memory_bounded && std::getenv("ASAN_OPTIONS") == nullptr)
    variables.emplace_back("ASAN_OPTIONS=detect_leaks=0");
  // A worker's threads share the machine with others, and must not spin while they wait.
  variables.emplace_back("OMP_WAIT_POLICY=passive");
  if (!worker_listen.empty()) variables.push_back("PIF_WORKER_LISTEN=" + worker_listen);  // libtool knows it too
  return variables;
}

// As execve takes them; points into `words`.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

// A pipe that says how a process begins: closed when its program runs, or the process ends. Nothing where nobody asks.
struct BegunPipe {
  UniqueFd ours, theirs;

  static Result<BegunPipe> make(bool is_wanted) {
    BegunPipe out;
    if (!is_wanted) return out;
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(errno, "cannot start a worker");
    out.ours = UniqueFd(pipe[0]);
    PIF_TRY_VALUE(out.theirs, raise(pipe[1]));
    return out;
  }
};

// The descriptor of a stored program for a child, whatever its user: nobody but the LFS reaches it by its name.
Result<UniqueFd> stored_for_child(const Handle* stored) {
  if (stored == nullptr || !stored->fd) return UniqueFd();
  if (::fchmod(stored->fd.get(), 0555) != 0) return fail_errno(errno, "cannot make a program one that can be run");
  return raise(::fcntl(stored->fd.get(), F_DUPFD_CLOEXEC, 0));
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string join(const std::vector<std::uint32_t>& numbers) { return fmt::format("{}", fmt::join(numbers, ",")); }

// What pif-exec is asked for besides, in options.
void add_options(const Spawner::Order& order, std::vector<std::string>& line) {
  if (!order.rules.memory_bounded) line.emplace_back("--any-memory");
  for (const FolderGrant& grant : order.grants)
    line.insert(line.end(), {grant.may_write ? "--write" : "--read", grant.folder});
  if (order.grants.empty()) return;
  for (const std::string& folder : order.rules.kept_away) line.insert(line.end(), {"--keep-away", folder});
}

class RealSpawner final : public Spawner {
 public:
  RealSpawner(std::string helper, std::string worker_listen)
      : helper_(std::move(helper)), worker_listen_(std::move(worker_listen)) {}

  ~RealSpawner() override {
    for (auto& [pid, process] : running_) {
      kill(pid);
      ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
    }
  }

  Result<Started> start(const Order& order) override {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
      return fail_errno(errno, "cannot make a worker's socket");
    }
    UniqueFd ours(sockets[0]);
    PIF_TRY_VALUE(UniqueFd theirs, raise(sockets[1]));
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(errno, "cannot make a worker's stderr");
    Words words{UniqueFd(pipe[0])};
    PIF_TRY_VALUE(UniqueFd mouth, raise(pipe[1]));

    PIF_TRY_VALUE(BegunPipe begun, BegunPipe::make(!order.build.empty()));
    PIF_TRY_VALUE(const UniqueFd stored, stored_for_child(order.stored));

    SpawnActions spawn;
    spawn.set_files(mouth.get(), theirs.get());
    spawn.set_program(begun.theirs.get(), stored.get());
    spawn.set_signals_and_group();
    const std::vector<std::string> line = command(order);
    const std::vector<std::string> environment = worker_environment(worker_listen_, order.rules);
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, helper_.c_str(), &spawn.actions, &spawn.attributes, pointers(line).data(),
                                     pointers(environment).data());
    if (failed != 0) return fail_errno(failed, fmt::format("cannot run {}", helper_));
    running_.emplace(pid, Process{std::move(words), std::move(begun.ours)});
    Started started;
    started.process = pid;
    started.connection.fd = std::move(ours);
    return started;
  }

  Begun begun(ProcessId process) override {
    const auto found = running_.find(process);
    if (found == running_.end() || !found->second.begun) return Begun::kRuns;
    char word = 0;
    const ssize_t got = ::read(found->second.begun.get(), &word, 1);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Begun::kPending;
    found->second.begun.reset();
    return got == 1 ? Begun::kLacks : Begun::kRuns;
  }

  void kill(ProcessId process) override {
    if (!running_.contains(process)) return;
    // The group; and the process itself, which may not have its group yet.
    ::kill(static_cast<pid_t>(-process), SIGKILL);
    ::kill(static_cast<pid_t>(process), SIGKILL);
  }

  std::string said(ProcessId process, std::size_t bytes) override {
    const auto found = running_.find(process);
    return found == running_.end() ? std::string() : found->second.words.take(bytes);
  }

  std::optional<WorkerExit> exited(ProcessId process) override {
    const auto found = running_.find(process);
    if (found == running_.end()) return WorkerExit{};
    found->second.words.drain();
    siginfo_t info{};
    const auto id = static_cast<id_t>(process);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return std::nullopt;
    // While the dead leader is not reaped its group's number cannot be anybody else's.
    ::kill(static_cast<pid_t>(-process), SIGKILL);
    ::waitid(P_PID, id, &info, WEXITED);
    WorkerExit exit;
    exit.by_signal = info.si_code != CLD_EXITED;
    exit.value = info.si_status;
    exit.said = found->second.words.take_all();
    exit.last_words = found->second.words.last();
    running_.erase(found);
    return exit;
  }

 private:
  struct Process {
    Words words;
    UniqueFd begun;  // until it is known
  };

  // What pif-exec takes: options, parent, user ("-": stay), groups, the worker's own folder, where it starts, the
  // program's build, program, arguments.
  std::vector<std::string> command(const Order& order) const {
    const bool change_user = ::geteuid() == 0 && order.uid != 0;
    std::vector<std::string> line{helper_};
    add_options(order, line);
    line.insert(line.end(),
                {std::to_string(::getpid()), change_user ? std::to_string(order.uid) : "-",
                 change_user ? join(order.gids) : "-", order.scratch_folder.empty() ? "-" : order.scratch_folder,
                 order.working_folder.empty() ? "/" : order.working_folder,
                 order.build.empty() ? "-" : hex(order.build), order.program});
    line.insert(line.end(), order.arguments.begin(), order.arguments.end());
    return line;
  }

  std::string helper_;
  std::string worker_listen_;
  std::unordered_map<ProcessId, Process> running_;
};

}  // namespace

std::unique_ptr<Spawner> make_real_spawner(std::string helper_path, std::string worker_listen) {
  return std::make_unique<RealSpawner>(std::move(helper_path), std::move(worker_listen));
}

}  // namespace pif::lfs
