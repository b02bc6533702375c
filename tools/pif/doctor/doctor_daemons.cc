// What `pif doctor` looks at of the processes of a file system on this machine.
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "daemons/daemons.h"
#include "daemons/processes.h"
#include "doctor/doctor.h"
#include "pif/base/handle.h"
#include "pif/base/version.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(3);

bool exists(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

// The program of a running process was replaced on disk since it was started.
bool runs_old_program(pid_t pid) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  return !error && path.string().ends_with(" (deleted)");
}

void report_down(Doctor& doctor, const cluster::Cluster& cluster, const Daemon& daemon) {
  const std::string said = last_log_line(daemon);
  std::string text = daemon.name + " is not running";
  if (!said.empty()) text += fmt::format("; its log ends: {}", said);
  if (exists(cluster.unix_path(daemon.name))) text += " (its socket was left behind: the next start replaces it)";
  doctor.wrong("daemons", text, "pif up " + cluster.folder);
}

// A process serves the daemon's folder, and somebody has removed the lock that it held.
void report_stray(Doctor& doctor, const cluster::Cluster& cluster, const Daemon& daemon, const Stray& stray) {
  doctor.wrong("daemons",
               fmt::format("{} runs (process {}), and its lock {} is gone", daemon.name, stray.pid, daemon.lock()),
               fmt::format("pif down {0}; pif up {0}", cluster.folder));
}

void check_running(Doctor& doctor, const cluster::Cluster& cluster, const Daemon& daemon, pid_t pid) {
  const std::string restart = fmt::format("pif down {0}; pif up {0}", cluster.folder);
  const std::string name = fmt::format("{} (process {})", daemon.name, pid), socket = cluster.unix_path(daemon.name);
  if (!exists(socket))
    doctor.wrong("daemons", fmt::format("{} runs, but its socket {} is gone", name, socket), restart);
  if (runs_old_program(pid)) doctor.warn("daemons", name + " runs a program that was replaced since", restart);
}

void check_nodes(Doctor& doctor, const SystemStatus& status) {
  std::vector<std::string> up;
  for (const Node& node : status.nodes) {
    if (node.state == "up") {
      up.push_back(node.name);
    } else if (node.trouble.empty()) {  // else check_troubles says it
      doctor.wrong("service",
                   fmt::format("the server has not heard of {} for {} ms: {}", node.name, node.silent_ms, node.state),
                   "look at its log; start it: pif up");
    }
  }
  doctor.ok("service", fmt::format("the server answers; {} of {} LFSs are up", up.size(), status.nodes.size()));
}

// What a person has to decide.
void check_troubles(Doctor& doctor, const cluster::Cluster& cluster, const SystemStatus& status) {
  if (!status.refused.empty())
    doctor.wrong("service", status.refused, "pif server accept-old --list shows what that would mean");
  for (const Node& node : status.nodes) {
    if (node.state == "failing")
      doctor.wrong("service", fmt::format("{}: {}", node.name, node.trouble),
                   fmt::format("look at the kernel's log; pif node lost {0} ends it, then a new disk: pif node replace "
                               "{0}, pif rebuild {0}",
                               node.name));
    else if (!node.trouble.empty())
      doctor.wrong("service", node.trouble,
                   cluster.bevy == 0
                       ? fmt::format("pif node accept-stale --list {} shows what that would mean", node.name)
                       : fmt::format("pif node replace and pif rebuild bring back what has parity; what accept-stale "
                                     "would mean: pif node accept-stale --list {}",
                                     node.name));
  }
}

void check_versions(Doctor& doctor, const cluster::Cluster& cluster, const std::vector<DaemonStats>& daemons) {
  const std::size_t before = doctor.findings().size();
  for (const DaemonStats& daemon : daemons) {
    if (daemon.version == version()) continue;
    doctor.wrong("versions",
                 fmt::format("{} runs version {}, this program is {}", daemon.node, daemon.version, version()),
                 fmt::format("pif down {0}; pif up {0}", cluster.folder));
  }
  if (doctor.findings().size() == before)
    doctor.ok("versions", fmt::format("{} daemons run {}", daemons.size(), version()));
}

// Whether the connection is made before the deadline: what drops packets would keep it waiting for minutes.
bool connects(int socket, const addrinfo& to) {
  if (::connect(socket, to.ai_addr, to.ai_addrlen) == 0) return true;
  pollfd waiting = {socket, POLLOUT, 0};
  const auto patience = std::chrono::milliseconds(kPatience).count();
  if (errno != EINPROGRESS || ::poll(&waiting, 1, static_cast<int>(patience)) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// Whether somebody accepts connections at "tcp://HOST:PORT".
bool listens(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  const std::string_view scheme = "tcp://";
  if (endpoint.rfind(scheme, 0) != 0 || colon <= scheme.size()) return false;
  addrinfo* found = nullptr;
  std::string host = endpoint.substr(scheme.size(), colon - scheme.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // IPv6
  if (::getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, nullptr, &found) != 0) return false;
  const UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool connected = connects(socket.get(), *found);
  ::freeaddrinfo(found);
  return connected;
}

void check_tcp(Doctor& doctor, const cluster::Cluster& cluster) {
  if (cluster.tcp == cluster::TcpMode::kNone) return;
  const std::string endpoint = cluster.server_endpoints().tcp();
  if (!endpoint.empty() && listens(endpoint)) return doctor.ok("tcp", "the server listens on " + endpoint);
  const std::string where = endpoint.empty() ? "nowhere" : endpoint;
  doctor.wrong("tcp", fmt::format("nobody listens where the server said it would ({})", where),
               fmt::format("pif down {0}; pif up {0}", cluster.folder));
}

}  // namespace

void check_daemons(Doctor& doctor, const cluster::Cluster& cluster, const std::string& programs) {
  const std::size_t before = doctor.findings().size();
  std::vector<std::string> running;
  const std::vector<Daemon> daemons = daemons_of(cluster, programs);
  const auto owner = owner_of(cluster);
  const std::vector<Stray> strays = owner ? strays_of(daemons, *owner) : std::vector<Stray>();
  for (const Daemon& daemon : daemons) {
    const auto pid = holder(daemon);
    const auto stray = std::find_if(strays.begin(), strays.end(), [&](const auto& s) { return s.name == daemon.name; });
    if (!pid) {
      doctor.warn("daemons", pid.error().text, "run pif doctor as the file system's owner");
    } else if (!*pid && stray != strays.end()) {
      report_stray(doctor, cluster, daemon, *stray);
    } else if (!*pid) {
      report_down(doctor, cluster, daemon);
    } else {
      check_running(doctor, cluster, daemon, **pid);
      running.push_back(daemon.name);
    }
  }
  if (doctor.findings().size() == before) doctor.ok("daemons", fmt::format("{} run", fmt::join(running, ", ")));
}

void check_clocks(Doctor& doctor, const SystemStatus& status) {
  const std::size_t before = doctor.findings().size();
  for (const Node& node : status.nodes) {
    if (std::abs(node.clock_ahead) < kClocksApart) continue;
    doctor.wrong("clock",
                 fmt::format("the clock of {} is {} s {} the server's", node.name, std::abs(node.clock_ahead),
                             node.clock_ahead > 0 ? "ahead of" : "behind"),
                 "set both, and keep them with NTP: capabilities expire by them");
  }
  if (doctor.findings().size() == before) doctor.ok("clock", "those of the LFSs agree with the server's");
}

void check_service(Doctor& doctor, const cluster::Cluster& cluster, const Program& program) {
  auto client = program.connect(kPatience);
  if (!client)
    return doctor.wrong("service", fmt::format("the server does not answer: {}", client.error().to_string()),
                        fmt::format("if it runs, look at {}/server.log", cluster.server_folder()));
  const auto status = client->status();
  if (!status) return doctor.wrong("service", status.error().to_string(), "look at the server's log");
  check_troubles(doctor, cluster, *status);
  check_nodes(doctor, *status);
  check_clocks(doctor, *status);
  check_tcp(doctor, cluster);
  const auto daemons = client->daemon_stats();
  if (daemons) return check_versions(doctor, cluster, *daemons);
  doctor.wrong("versions", fmt::format("the daemons do not say what they are: {}", daemons.error().to_string()),
               fmt::format("they are older than this program: pif down {0}; pif up {0}", cluster.folder));
}

}  // namespace pif::cli
