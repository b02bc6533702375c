#include "cluster/startup.h"

#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include <fmt/format.h>

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kStopDeadline = std::chrono::seconds(10);
constexpr auto kAskInterval = std::chrono::milliseconds(250);  // children are looked after between two questions
constexpr auto kStartPoll = std::chrono::milliseconds(5);

}  // namespace

Startup::~Startup() {
  if (!kept_) undo();
}

Status Startup::start_missing(const std::vector<Daemon>& daemons) {
  for (const auto& daemon : daemons) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    if (pid) continue;
    PIF_TRY_VALUE(const pid_t child, start(daemon));
    children_.push_back({daemon, child});
  }
  return {};
}

Status Startup::ended(const Child& child) {
  const std::string line = last_log_line(child.daemon);
  return fail(Code::kUnavailable, fmt::format("{} did not start: {} (log: {})", child.daemon.name,
                                              line.empty() ? "it said nothing" : line, child.daemon.log()));
}

Status Startup::check_alive() {
  for (auto& child : children_) {
    if (child.pid == 0 || ::waitpid(child.pid, nullptr, WNOHANG) == 0) continue;
    child.pid = 0;
    return ended(child);
  }
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
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return ended(child);
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

}  // namespace pif::cli
