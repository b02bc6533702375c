#include "daemons/startup.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemons/processes.h"

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kStopDeadline = std::chrono::seconds(10);
constexpr auto kAskInterval = std::chrono::milliseconds(250);  // children are looked after between two questions
constexpr auto kReadyPoll = std::chrono::milliseconds(50);
constexpr auto kStrayPatience = std::chrono::seconds(3);
constexpr auto kAnswerPatience = std::chrono::seconds(1);
constexpr auto kStartPoll = std::chrono::milliseconds(5);

// The LFSs that the server takes neither for up nor for stale. One that was started just now must have reported itself:
// for some seconds after an LFS has died, the server still believes in the one before.
std::vector<std::string> missing_names(const SystemStatus& status, const StartedLfss& lfss) {
  std::vector<std::string> missing;
  for (const auto& [name, started] : lfss) {
    const bool has_come =
        std::any_of(status.nodes.begin(), status.nodes.end(), [&wanted = name, pid = started](const Node& node) {
          const bool is_up = node.state == "up" && (pid == 0 || node.pid == pid);
          return node.name == wanted && (is_up || node.state == "stale");
        });
    if (!has_come) missing.push_back(name);
  }
  return missing;
}

// What a person has to decide: waiting does not help.
Status check_server(const SystemStatus& status) {
  if (status.refused.empty()) return {};
  return fail(Code::kStaleServer, status.refused);
}
Status check_nodes(const SystemStatus& status, const StartedLfss& lfss) {
  for (const Node& node : status.nodes) {
    if (node.state == "stale" && lfss.contains(node.name)) return fail(Code::kStaleNode, node.trouble);
  }
  return {};
}

// A process that serves it while nobody holds its lock: somebody has removed that.
std::optional<pid_t> stray_of(const Daemon& daemon) {
  const auto pid = holder(daemon);
  if (pid && *pid) return std::nullopt;
  const auto strays = strays_of({daemon}, ::geteuid());
  return strays.empty() ? std::nullopt : std::optional(strays.front().pid);
}

// Waits for the end of what serves the daemon's folder without its lock: a second one would write beside it. One that
// starts at this moment gets its lock meanwhile.
Status await_no_stray(const Daemon& daemon) {
  const auto deadline = SteadyClock::now() + kStrayPatience;
  while (const auto stray = stray_of(daemon)) {
    if (SteadyClock::now() >= deadline)
      return fail(Code::kBusy, fmt::format("{} runs (process {}), and its lock {} is gone: stop it with pif down",
                                           daemon.name, *stray, daemon.lock()));
    std::this_thread::sleep_for(kReadyPoll);
  }
  return {};
}

// Whether the daemon runs, and serves. One that was killed a moment ago may still have its lock: it is waited for.
// has_process: some process serves its folder, with the lock or without.
Result<bool> is_running(const Daemon& daemon, bool has_process, SteadyClock::time_point deadline) {
  while (true) {
    if (has_process) PIF_TRY(await_no_stray(daemon));
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    if (!pid) return false;
    if (answers(daemon, kAnswerPatience)) return true;
    if (SteadyClock::now() >= deadline)
      return fail(Code::kTimeout, fmt::format("{} (process {}) runs, and does not answer: see its log {}, or stop it "
                                              "with pif down",
                                              daemon.name, *pid, daemon.log()));
    std::this_thread::sleep_for(kReadyPoll);
  }
}

}  // namespace

Startup::~Startup() {
  if (!kept_) undo();
}

Status Startup::start_one(const Daemon& daemon, SteadyClock::time_point deadline) {
  auto runs = is_running(daemon, served_.contains(daemon.name), deadline);
  if (!runs && daemon.name == "server") return fail(std::move(runs.error()));
  if (!runs) note_failed(daemon.name, std::move(runs.error()));
  if (!runs || *runs) return {};
  const std::uint64_t log_begin = log_size(daemon);
  auto child = start(daemon, notify_);
  if (child) children_.push_back({daemon, *child, log_begin});
  if (child) return {};
  if (daemon.name == "server") return fail(std::move(child.error()));
  note_failed(daemon.name, std::move(child.error()));  // a disk that takes no log, perhaps
  return {};
}

Status Startup::start_missing(const std::vector<Daemon>& daemons) {
  const auto deadline = SteadyClock::now() + kSystemUpDeadline;
  for (Stray& found : strays_of(daemons, ::geteuid())) served_.insert(std::move(found.name));
  std::vector<const Daemon*> held;  // may have to be waited for: the others start meanwhile
  for (const Daemon& daemon : daemons) {
    const auto pid = holder(daemon);  // of a disk that fails nothing may be said: start_one() says it
    if (pid && *pid)
      held.push_back(&daemon);
    else
      PIF_TRY(start_one(daemon, deadline));
  }
  for (const Daemon* daemon : held) PIF_TRY(start_one(*daemon, deadline));
  return {};
}

Error Startup::ended(const Child& child, int status) {
  return {Code::kUnavailable,
          fmt::format("{} did not start: {} (log: {})", child.daemon.name,
                      reason_of_end(child.daemon, child.log_begin, status), child.daemon.log()),
          {}};
}

Status Startup::check_alive() {
  for (auto& child : children_) {
    int status = 0;
    if (child.pid == 0 || ::waitpid(child.pid, &status, WNOHANG) == 0) continue;
    child.pid = 0;
    if (child.daemon.name == "server") return fail(ended(child, status));
    failed_.emplace(child.daemon.name, ended(child, status));
  }
  return {};
}

void Startup::note_failed(const std::string& name, Error why) { failed_.emplace(name, std::move(why)); }

std::vector<Error> Startup::errors() const {
  std::vector<Error> out;
  for (const auto& [name, why] : failed_) out.push_back(why);
  return out;
}

Status Startup::await_ready(const ReadyListener& listener, SteadyClock::time_point deadline) {
  std::set<pid_t> ready;
  const auto is_waited = [&](const Child& child) { return child.pid != 0 && ready.count(child.pid) == 0; };
  while (true) {
    const auto slow = std::find_if(children_.begin(), children_.end(), is_waited);
    if (slow == children_.end()) break;
    if (SteadyClock::now() >= deadline)
      return fail(Code::kTimeout,
                  fmt::format("{} does not serve yet; see its log {}", slow->daemon.name, slow->daemon.log()));
    for (const pid_t pid : listener.wait(kReadyPoll)) ready.insert(pid);
    PIF_TRY(check_alive());
  }
  const bool have_all_ended =
      std::all_of(children_.begin(), children_.end(), [](const Child& child) { return child.pid == 0; });
  if (!children_.empty() && have_all_ended) return all_of(errors());
  return {};
}

Status Startup::await_end(SteadyClock::time_point deadline) {
  for (auto& child : children_) {
    int status = 0;
    while (::waitpid(child.pid, &status, WNOHANG) == 0) {
      if (SteadyClock::now() >= deadline)
        return fail(Code::kTimeout,
                    fmt::format("{} has not ended; see its log {}", child.daemon.arguments[0], child.daemon.log()));
      std::this_thread::sleep_for(kStartPoll);
    }
    child.pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fail(ended(child, status));
  }
  return {};
}

pid_t Startup::pid_of(const std::string& name) const {
  for (const auto& child : children_) {
    if (child.daemon.name == name) return child.pid;
  }
  return 0;
}

void Startup::undo() {
  for (const auto& child : children_) {
    if (child.pid != 0) ::kill(child.pid, SIGTERM);
  }
  const auto deadline = SteadyClock::now() + kStopDeadline;
  for (const auto& child : children_) {
    if (child.pid == 0) continue;
    while (::waitpid(child.pid, nullptr, WNOHANG) == 0) {
      if (SteadyClock::now() >= deadline) ::kill(child.pid, SIGKILL);
      std::this_thread::sleep_for(kStartPoll);
    }
  }
}

Result<Client> await_server(const cluster::Cluster& cluster, Startup& startup, SteadyClock::time_point deadline) {
  ConnectOptions options;
  options.where = cluster.folder;
  options.timeout = kAskInterval;
  while (true) {
    auto client = Client::connect(options);
    if (client) return client;
    PIF_TRY(startup.check_alive());
    if (SteadyClock::now() >= deadline)
      return fail(Code::kTimeout, fmt::format("the server does not answer: {} (log: {}/server.log)",
                                              client.error().to_string(), cluster.server_folder()));
    std::this_thread::sleep_for(kStartPoll);
  }
}

// A stale one is reported when the others have come: they are needed for what a person says then.
Status await_up(const cluster::Cluster& cluster, Startup& startup, const StartedLfss& lfss) {
  const auto deadline = SteadyClock::now() + kSystemUpDeadline;
  StartedLfss awaited = lfss;
  std::vector<std::string> missing = {"the LFSs"};
  Status is_fresh;
  PIF_TRY_VALUE(Client client, await_server(cluster, startup, deadline));
  while (true) {
    PIF_TRY(startup.check_alive());
    for (const auto& [name, why] : startup.failed()) awaited.erase(name);
    if (awaited.empty() && !lfss.empty()) return all_of(startup.errors());
    const auto status = client.status(static_cast<std::uint32_t>(awaited.size()));
    if (status) PIF_TRY(check_server(*status));  // LFSs are up all the same
    if (status) missing = missing_names(*status, awaited);
    if (status) is_fresh = check_nodes(*status, awaited);
    if (missing.empty()) return is_fresh;
    if (SteadyClock::now() >= deadline) break;
    std::this_thread::sleep_for(kStartPoll);
  }
  Error late{Code::kTimeout,
             fmt::format("not up after {} s: {}; see their logs under {}", kSystemUpDeadline.count(),
                         fmt::join(missing, ", "), cluster.folder),
             {}};
  if (missing.size() >= awaited.size()) return fail(std::move(late));
  startup.note_failed(missing.front(), std::move(late));
  return is_fresh;
}

Status all_of(const std::vector<Error>& errors) {
  if (errors.empty()) return {};
  Error all = errors.front();
  for (std::size_t i = 1; i < errors.size(); ++i) all.text += "; " + errors[i].text;
  return fail(std::move(all));
}

}  // namespace pif::cli
