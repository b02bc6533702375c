#include "hosts/hosts_status.h"

#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "hosts/several_hosts.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct HostState {
  std::size_t daemons = 0, up = 0;
  std::int64_t clock_ahead = 0;
};

HostState state_of(const cluster::Cluster& cluster, const std::string& host, const SystemStatus& status) {
  HostState state;
  for (const auto& server : cluster.servers) {
    if (server.host != host) continue;
    ++state.daemons;
    ++state.up;  // it has answered
  }
  for (const auto& lfs : cluster.lfss) {
    if (lfs.host != host) continue;
    ++state.daemons;
    for (const Node& node : status.nodes) {
      if (node.id != lfs.id || node.state != "up") continue;
      ++state.up;
      if (std::abs(node.clock_ahead) > std::abs(state.clock_ahead)) state.clock_ahead = node.clock_ahead;
    }
  }
  return state;
}

// "3 s ahead" of the server's.
std::string clock_text(const HostState& state) {
  if (state.up == 0) return "-";
  if (state.clock_ahead == 0) return "right";
  return fmt::format("{} s {}", std::abs(state.clock_ahead), state.clock_ahead > 0 ? "ahead" : "behind");
}

}  // namespace

Json hosts_json(const cluster::Cluster& cluster, const SystemStatus& status) {
  Json out = Json::array();
  for (const auto& host : cluster.hosts) {
    const HostState state = state_of(cluster, host.name, status);
    out.push_back({{"name", host.name},
                   {"address", host.address},
                   {"folder", host.folder},
                   {"daemons", state.daemons},
                   {"up", state.up},
                   {"clock_ahead", state.clock_ahead}});
  }
  return out;
}

std::string hosts_table(const cluster::Cluster& cluster, const SystemStatus& status) {
  if (!cluster.has_hosts()) return {};
  std::vector<std::vector<std::string>> rows = {{"host", "address", "daemons up", "clock"}};
  for (const auto& host : cluster.hosts) {
    const HostState state = state_of(cluster, host.name, status);
    rows.push_back({host.name, host.address,
                    state.daemons == 0 ? "-" : fmt::format("{} of {}", state.up, state.daemons), clock_text(state)});
  }
  return table(rows);
}

Status print_hosts_down(const Program& program, const cluster::Cluster& cluster, const RemoteShell& shell) {
  Json hosts = Json::array();
  std::vector<std::vector<std::string>> rows = {{"host", "daemon", "state", "process"}};
  for (const HostAnswer& answer : SeveralHosts(cluster, shell).status()) {
    if (!answer.answer) {
      rows.push_back({answer.host, "?", one_line(answer.answer.error().text), ""});
      hosts.push_back({{"host", answer.host}, {"error", answer.answer.error().text}});
      continue;
    }
    hosts.push_back(*answer.answer);
    for (const Json& daemon : answer.answer->value("daemons", Json::array()))
      rows.push_back({answer.host, daemon.value("name", ""), daemon.value("state", ""),
                      daemon.value("pid", 0) == 0 ? "" : std::to_string(daemon.value("pid", 0))});
  }
  if (program.common.json) return print(Json{{"cluster", cluster.id}, {"hosts", hosts}});
  return print(fmt::format("cluster {}: the server does not answer\n", cluster.id) + table(rows));
}

}  // namespace pif::cli
