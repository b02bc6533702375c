#include "cluster/activity.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr double kMegabyte = 1e6;
constexpr std::size_t kPeersShown = 8;  // on the line of a daemon

// Requests that are answered when something happens.
bool waits_on_purpose(const std::string& operation) {
  constexpr std::array<std::string_view, 2> kWaiting = {"job_wait", "nodes"};
  return std::find(kWaiting.begin(), kWaiting.end(), operation) != kWaiting.end();
}

const DaemonStats* same_process(const std::vector<DaemonStats>& daemons, const DaemonStats& now) {
  const auto at = std::find_if(daemons.begin(), daemons.end(), [&](const DaemonStats& daemon) {
    return daemon.node == now.node && daemon.pid == now.pid && daemon.uptime <= now.uptime;
  });
  return at == daemons.end() ? nullptr : &*at;
}

const OperationStats& operation_of(const DaemonStats* daemon, const std::string& name) {
  static const OperationStats kNone;
  if (daemon == nullptr) return kNone;
  const auto at = std::find_if(daemon->operations.begin(), daemon->operations.end(),
                               [&](const OperationStats& operation) { return operation.name == name; });
  return at == daemon->operations.end() ? kNone : *at;
}

Activity activity_of(const DaemonStats* before, const DaemonStats& now, double seconds) {
  Activity out;
  out.node = now.node;
  for (const OperationStats& operation : now.operations) {
    const OperationStats& old = operation_of(before, operation.name);
    out.operations += static_cast<double>(operation.count - old.count) / seconds;
    out.errors += static_cast<double>(operation.errors - old.errors) / seconds;
    out.bytes_in += static_cast<double>(operation.bytes_in - old.bytes_in) / seconds;
    out.bytes_out += static_cast<double>(operation.bytes_out - old.bytes_out) / seconds;
    if (!waits_on_purpose(operation.name)) out.latency.merge(operation.latency.since(old.latency));
  }
  out.under_way = now.under_way;
  if (now.log_bytes_max > 0)
    out.log_share = static_cast<double>(now.log_bytes) / static_cast<double>(now.log_bytes_max);
  return out;
}

std::int64_t microseconds(Duration duration) { return duration.count() / 1000; }

std::string short_time(Duration duration) {
  const double us = static_cast<double>(duration.count()) / 1000;
  if (us < 1000) return fmt::format("{:.0f} us", us);
  return us < 1e6 ? fmt::format("{:.1f} ms", us / 1000) : fmt::format("{:.2f} s", us / 1e6);
}

Json json_of(const OperationStats& operation) {
  const auto count = static_cast<std::int64_t>(std::max<std::uint64_t>(1, operation.count));
  return {{"name", operation.name},
          {"count", operation.count},
          {"errors", operation.errors},
          {"bytes_in", operation.bytes_in},
          {"bytes_out", operation.bytes_out},
          {"mean_us", microseconds(operation.total) / count},
          {"p50_us", microseconds(std::min(operation.latency.percentile(50), operation.longest))},
          {"p99_us", microseconds(std::min(operation.latency.percentile(99), operation.longest))},
          {"max_us", microseconds(operation.longest)}};
}

Json json_of(const PeerStats& peer) {
  return {{"program", peer.program},
          {"uid", peer.uid},
          {"waiting", peer.waiting},
          {"waiting_bytes", peer.waiting_bytes},
          {"served_bytes", peer.served_bytes}};
}

// "pif-get[811] 12 requests, 3.0 MiB"; programs name themselves, so with care.
std::string peer_text(const PeerStats& peer) {
  const std::string who = peer.program.empty() ? fmt::format("uid {}", peer.uid) : one_line(peer.program);
  return fmt::format("{} {} request{}, {}{}", who, peer.waiting, peer.waiting == 1 ? "" : "s",
                     human_bytes(peer.waiting_bytes), peer.waiting_bytes < 1024 ? " bytes" : "");
}

// "lfs0: 2 clients wait: ...; ...; 3 more".
std::string waiting_line(const DaemonStats& daemon) {
  std::string out = fmt::format("{}: {} client{} wait{}: ", daemon.node, daemon.peers_waiting,
                                daemon.peers_waiting == 1 ? "" : "s", daemon.peers_waiting == 1 ? "s" : "");
  const std::size_t shown = std::min(daemon.peers.size(), kPeersShown);
  for (std::size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : "; ") + peer_text(daemon.peers[i]);
  if (daemon.peers_waiting > shown) out += fmt::format("; {} more", daemon.peers_waiting - shown);
  return out + "\n";
}

}  // namespace

std::string waiting_text(const std::vector<DaemonStats>& daemons) {
  std::string out;
  for (const DaemonStats& daemon : daemons)
    if (daemon.peers_waiting > 0) out += waiting_line(daemon);
  return out;
}

std::vector<Activity> activity_between(const std::vector<DaemonStats>& before, const std::vector<DaemonStats>& after,
                                       double seconds) {
  std::vector<Activity> out;
  for (const DaemonStats& now : after) out.push_back(activity_of(same_process(before, now), now, seconds));
  return out;
}

std::string activity_table(const std::vector<Activity>& activities) {
  std::vector<std::vector<std::string>> rows = {
      {"daemon", "ops/s", "errors/s", "MB/s in", "MB/s out", "p50", "p99", "under way", "log full"}};
  for (const Activity& one : activities) {
    rows.push_back({one.node, fmt::format("{:.0f}", one.operations), fmt::format("{:.0f}", one.errors),
                    fmt::format("{:.1f}", one.bytes_in / kMegabyte), fmt::format("{:.1f}", one.bytes_out / kMegabyte),
                    short_time(one.latency.percentile(50)), short_time(one.latency.percentile(99)),
                    std::to_string(one.under_way), fmt::format("{:.0f}%", one.log_share * 100)});
  }
  return table(rows, {1, 2, 3, 4, 5, 6, 7, 8});
}

Json json_of(const DaemonStats& daemon) {
  Json operations = Json::array(), peers = Json::array();
  for (const OperationStats& operation : daemon.operations) operations.push_back(json_of(operation));
  for (const PeerStats& peer : daemon.peers) peers.push_back(json_of(peer));
  const auto refused = daemon.errors.find(std::string(code_name(Code::kBadCapability)));
  return {{"node", daemon.node},
          {"version", daemon.version},
          {"pid", daemon.pid},
          {"uptime_ms", daemon.uptime.count() / 1'000'000},
          {"under_way", daemon.under_way},
          {"under_way_max", daemon.under_way_max},
          {"log_bytes", daemon.log_bytes},
          {"log_bytes_max", daemon.log_bytes_max},
          {"log_written", daemon.log_written},
          {"view", daemon.view},
          {"has_lease", daemon.has_lease},
          {"capabilities_refused", refused == daemon.errors.end() ? 0 : refused->second},
          {"errors", daemon.errors},
          {"operations", operations},
          {"peers_waiting", daemon.peers_waiting},
          {"peers", peers}};
}

}  // namespace pif::cli
