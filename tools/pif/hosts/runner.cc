// pif host run: this host's daemons in the foreground, for whatever looks after services.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "daemons/daemons.h"
#include "daemons/ready.h"
#include "daemons/roots.h"
#include "hosts/one_host.h"
#include "pif/base/print.h"
#include "pif/cluster/notify.h"

namespace pif::cli {
namespace {

using RunnerClock = std::chrono::steady_clock;

constexpr auto kRestartFirst = std::chrono::seconds(1), kRestartLast = std::chrono::seconds(30);
constexpr auto kRunsWell = std::chrono::seconds(60);  // what ran for so long is started again at once, as at first
constexpr auto kAnswerPatience = std::chrono::seconds(1);
constexpr auto kLookInterval = std::chrono::milliseconds(100);

// The signals that end it, blocked, so that they can be asked for.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  bool came() const {
    const timespec at_once{};
    return ::sigtimedwait(&signals_, nullptr, &at_once) > 0;
  }

 private:
  sigset_t signals_{};
};

// One of this host's daemons, and when it is to be started.
struct Supervised {
  Daemon daemon;
  pid_t pid = 0;            // 0: it does not run as our child
  bool is_others = false;   // somebody else has started it
  bool is_missing = false;  // its disk is not there
  RunnerClock::time_point since{}, next{};
  std::chrono::seconds pause = kRestartFirst;
  std::uint64_t log_begin = 0;  // bytes of the log when it was started
};

// Only one of a folder; `pif host down` finds it by its lock.
Result<UniqueFd> lock_runner(const Daemon& runner) {
  UniqueFd lock(::open(runner.lock().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock) return fail_errno(errno, "cannot make " + runner.lock());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Code::kBusy,
                fmt::format("somebody runs pif host run {} already (lock {})", runner.folder, runner.lock()));
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(lock.get(), 0) != 0 ||
      ::pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return fail_errno(errno, "cannot write " + runner.lock());
  ::prctl(PR_SET_NAME, "pif");  // also if it is called by the name of a link
  return lock;
}

void say(const std::string& text) { print_error(fmt::format("pif host run: {}\n", one_line(text))); }

// Starts those whose time has come and that nobody else runs. One whose disk is not there is looked for again: nothing
// is made in its place.
void start_due(std::vector<Supervised>& all, const std::string& notify) {
  const auto now = RunnerClock::now();
  for (Supervised& one : all) {
    if (one.pid != 0 || now < one.next) continue;
    one.since = now;
    one.next = now + one.pause;
    const auto other = holder(one.daemon);
    one.is_others = other && *other && answers(one.daemon, kAnswerPatience);
    if (one.is_others || (other && *other)) continue;  // without an answer it is dying, or starts
    one.is_missing = !has_root(one.daemon);
    if (one.is_missing) continue;
    one.log_begin = log_size(one.daemon);
    const auto started = start(one.daemon, notify);
    if (started) one.pid = *started;
    if (!started) say(started.error().to_string());
  }
}

// Takes note of those that have ended: each waits longer than before, but for one that ran well.
void note_ended(std::vector<Supervised>& all) {
  const auto now = RunnerClock::now();
  for (Supervised& one : all) {
    int status = 0;
    if (one.pid == 0 || ::waitpid(one.pid, &status, WNOHANG) == 0) continue;
    one.pid = 0;
    if (now - one.since >= kRunsWell) one.pause = kRestartFirst;
    one.next = now + one.pause;
    say(fmt::format("{} has ended, and is started again in {} s: {} (log: {})", one.daemon.name, one.pause.count(),
                    reason_of_end(one.daemon, one.log_begin, status), one.daemon.log()));
    one.pause = std::min(2 * one.pause, kRestartLast);
  }
}

Status stop_all(const std::vector<Supervised>& all, uid_t owner) {
  std::vector<Daemon> daemons;
  for (const Supervised& one : all) daemons.push_back(one.daemon);
  PIF_TRY_VALUE(const Stopped stopped, stop(daemons, owner, kSystemDownDeadline));
  for (const std::string& name : stopped.killed)
    say(fmt::format("{} did not stop within {} s and was killed", name, kSystemDownDeadline.count()));
  for (const Supervised& one : all) {
    if (one.pid != 0) ::waitpid(one.pid, nullptr, 0);
  }
  return {};
}

}  // namespace

Status run_here(const std::string& folder) {
  const EndSignals signals;
  PIF_TRY_VALUE(cluster::Cluster cluster, load_system(folder));
  PIF_TRY_VALUE(const uid_t owner, owner_of(cluster));
  PIF_TRY_VALUE(const UniqueFd lock, lock_runner(runner_of(cluster, program_folder())));
  if (cluster.has_hosts()) PIF_TRY(cluster::check_ready(cluster));
  if (!cluster.has_hosts()) PIF_TRY(make_ready(cluster));
  PIF_TRY(daemons_with_roots(cluster));
  if (const Status roots = check_roots_there(cluster); !roots) say(roots.error().text);
  PIF_TRY(check_unshared(cluster));
  PIF_TRY_VALUE(const ReadyListener listener, ReadyListener::open());
  std::vector<Supervised> all;
  for (Daemon& daemon : daemons_of(cluster, program_folder())) all.push_back({std::move(daemon)});
  std::set<pid_t> serving;
  for (bool has_said = false; !signals.came();) {
    start_due(all, listener.address());
    for (const pid_t pid : listener.wait(kLookInterval)) serving.insert(pid);
    note_ended(all);
    const auto is_up = [&](const Supervised& one) { return one.is_others || serving.count(one.pid) != 0; };
    const bool are_up =
        std::all_of(all.begin(), all.end(), [&](const Supervised& one) { return one.is_missing || is_up(one); });
    if (are_up && !std::exchange(has_said, true)) {
      cluster::notify_ready();
      say(fmt::format("{} daemons of {} are up", std::count_if(all.begin(), all.end(), is_up), cluster.folder));
    }
  }
  return stop_all(all, owner);
}

}  // namespace pif::cli
