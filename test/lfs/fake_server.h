// A PIF Server as an LFS sees it: admits it, knows files' states, and notes what it hears.
#pragma once

#include <functional>
#include <map>

#include "node.h"
#include "pif/net/calls.h"
#include "pif/wire/values.h"

namespace pif::lfs::test {

// Stands for the PIF Server: knows files' states, and notes what it hears.
struct FakeServer {
  std::map<std::uint64_t, std::uint32_t> states;  // others: `unknown`
  std::uint32_t unknown = 3;
  std::vector<std::uint64_t> asked;
  std::uint64_t session = 1;  // run
  std::uint64_t index = 100;  // of the directory; rises with each admission
  std::uint32_t verdict = 0;  // instead of what it would say; 0: nothing
  bool ask_all = false;
  std::string view;  // packed; empty: none
  std::uint32_t lease_ms = 0;
  std::vector<proto::ClusterFile> files;  // of a newer description
  proto::Heartbeat beat;                  // the last
  std::vector<std::uint32_t> stages;      // of heartbeats
  proto::NodeInfo node;
  unsigned beats = 0;
  bool all_allowed = true;
  bool refuses_states = false;
  unsigned refused = 0;

  void run(sim::Actor& self, const Node& lfs) {
    for (;;) {
      auto delivery = self.messenger().receive(kNever);
      if (!delivery) return;
      if (!*delivery || (*delivery)->kind != net::Delivery::Kind::kPacket) continue;
      const auto& request = (*delivery)->packet.envelope;
      const auto capability = verify_capability(lfs.key, request.capability(), self.clock().wall_seconds());
      all_allowed = all_allowed && capability && (capability->rights & kMayManage) != 0;
      (void)self.messenger().send((*delivery)->peer, answer(request));
    }
  }
  net::Packet answer(const proto::Envelope& request) {
    if (request.has_file_states() && refuses_states) {
      ++refused;
      return net::error_reply(request, Error{Code::kIo, "the disk failed", {}}, "server");
    }
    auto reply = net::reply_to(request);
    if (request.has_list_lost()) (void)reply.envelope.mutable_list_lost_reply();  // nothing that it lacks
    if (request.has_heartbeat()) {
      ++beats;
      node = request.heartbeat().node();
      answer_beat(request.heartbeat(), *reply.envelope.mutable_heartbeat_reply());
    }
    if (request.has_file_states()) {
      *reply.envelope.mutable_file_states_reply()->mutable_moment() = moment();
      for (const auto id : request.file_states().files()) {
        asked.push_back(id);
        const auto at = states.find(id);
        reply.envelope.mutable_file_states_reply()->add_states(at == states.end() ? unknown : at->second);
      }
    }
    return reply;
  }
  proto::Moment moment() const {
    proto::Moment out;
    out.set_run(session);
    out.set_index(index);
    return out;
  }
  void answer_beat(const proto::Heartbeat& heard, proto::HeartbeatReply& reply) {
    beat = heard;
    stages.push_back(heard.stage());
    reply.set_verdict(verdict != 0 ? verdict : heard.stage() == wire::kAsks ? wire::kAdmitted : wire::kGoOn);
    reply.set_text("why");
    reply.set_ask_all(ask_all);
    if (!view.empty()) reply.set_view(view);
    reply.set_lease_ms(lease_ms);
    for (const auto& file : files) *reply.add_files() = file;
    if (reply.verdict() == wire::kAdmitted) reply.set_incarnation(++index);
    *reply.mutable_moment() = moment();
  }
};

struct ReportingFixture {
  ReportingFixture() { node.server.set_unix_path("sim:server"); }
  void start_server() {
    actor = world.spawn("server", [this](sim::Actor& self) { server.run(self, node); }, {0, {0}});
  }
  void run(const std::function<void(Peer&)>& body) {
    node.start();
    world.spawn_main("client", [&](sim::Actor& self) {
      Peer peer(self, node);
      body(peer);
    });
    world.run();
  }
  static void seal_one(Peer& peer, std::uint64_t id) {
    TestFile file;
    file.id = id;
    REQUIRE_OK(peer.write(file, 0, 5, pattern(500, 1)));
    REQUIRE_OK(peer.seal(file, 5, 500));
  }
  static std::uint32_t state_of(Peer& peer, std::uint64_t id) {
    auto list = peer.request(0, kMayManage);
    list.envelope.mutable_list_components()->set_limit(100);
    const auto reply = peer.call(std::move(list));
    REQUIRE_OK(reply);
    for (const auto& c : reply->envelope.list_components_reply().components())
      if (c.shape().file() == id) return c.state();
    return 0;
  }

  sim::World world{1};
  Node node{world};
  FakeServer server;
  sim::ActorId actor = 0;
};

}  // namespace pif::lfs::test
