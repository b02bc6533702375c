// What this client asked for, and what the daemons did.
#include <algorithm>

#include "pif/client/client.h"
#include "pif/client/session.h"
#include "session/in_use.h"

namespace pif {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);  // with an LFS: the others' figures are worth showing alone
constexpr std::uint32_t kStateDown = 3;

std::vector<OperationStats> operations_of(const proto::StatsReply& reply) {
  std::vector<OperationStats> out;
  for (const proto::OperationStats& from : reply.operations()) {
    OperationStats& to = out.emplace_back();
    to.name = from.name();
    to.count = from.count();
    to.errors = from.errors();
    to.bytes_in = from.bytes_in();
    to.bytes_out = from.bytes_out();
    to.total = std::chrono::microseconds(from.total_us());
    to.longest = std::chrono::microseconds(from.max_us());
    to.latency = net::latency_of(from);
  }
  return out;
}

DaemonStats stats_of(const proto::StatsReply& reply) {
  DaemonStats out;
  out.node = reply.node();
  out.version = reply.version();
  out.pid = reply.pid();
  out.uptime = std::chrono::milliseconds(reply.uptime_ms());
  out.operations = operations_of(reply);
  for (int i = 0; i < std::min(reply.error_codes_size(), reply.error_counts_size()); ++i)
    out.errors[std::string(code_name(code_from_number(reply.error_codes(i))))] += reply.error_counts(i);
  out.under_way = reply.under_way();
  out.under_way_max = reply.under_way_max();
  out.log_bytes = reply.log_bytes();
  out.log_bytes_max = reply.log_bytes_max();
  out.log_written = reply.log_written();
  out.view = reply.view();
  out.has_lease = reply.has_lease();
  out.peers_waiting = reply.peers_waiting();
  for (const proto::PeerStats& peer : reply.peers())
    out.peers.push_back({peer.program(), peer.uid(), peer.waiting(), peer.waiting_bytes(), peer.served_bytes()});
  return out;
}

}  // namespace

std::vector<OperationStats> Client::stats() const {
  proto::StatsReply reply;
  session_->stats().describe(reply);
  return operations_of(reply);
}

Result<std::vector<DaemonStats>> Client::daemon_stats() {
  return client::in_use(session_->user(), [&]() -> Result<std::vector<DaemonStats>> {
    PIF_TRY_VALUE(const proto::NodesReply nodes, session_->call(proto::Nodes()));
    PIF_TRY_VALUE(const proto::StatsReply server, session_->call(proto::Stats()));
    std::vector<DaemonStats> out = {stats_of(server)};
    std::vector<net::CallId> calls;
    for (const proto::NodeInfo& node : nodes.nodes()) {
      if (node.state() == kStateDown) continue;
      if (const auto call = session_->start_node(node, net::packet_of(proto::Stats()), kPatience))
        calls.push_back(*call);
    }
    for (const net::CallId call : calls) {
      const auto reply = net::reply_in<proto::Stats>(session_->caller().wait(call));
      if (reply) out.push_back(stats_of(*reply));
    }
    return out;
  });
}

}  // namespace pif
