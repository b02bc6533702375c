// LFSs that say which view they have adopted, and whoever decides about them: for tests of views.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fixture.h"

namespace pif::server::testing {

using namespace wire;

// An LFS that says what it has been told.
struct Lfs {
  std::uint32_t id = 1;
  std::uint64_t incarnation = 0;
  std::uint64_t number = 0;
  std::string uuid;
  std::uint64_t adopted = 1;  // the first view
  std::uint64_t peers = 0;
  proto::Moment told;
  std::string trouble;  // how its disk fails

  explicit Lfs(std::uint32_t of) : id(of), uuid(std::string(32, static_cast<char>('0' + of))) {}
  Envelope request(const World& world, BeatStage stage) const {
    Envelope request = world.heartbeat(id);
    proto::Heartbeat& beat = *request.mutable_heartbeat();
    beat.mutable_node()->set_uuid(uuid);
    beat.mutable_node()->set_incarnation(incarnation);
    beat.mutable_node()->set_number(number);
    if (!trouble.empty()) {
      beat.mutable_node()->set_state(kStateFailing);
      beat.mutable_node()->set_trouble(trouble);
    }
    beat.set_stage(stage);
    beat.set_view(adopted);
    beat.set_peers(peers);
    *beat.mutable_kept() = told;
    return request;
  }
  proto::HeartbeatReply beat(World& world, BeatStage stage = kServes) {
    world.messenger->sent.clear();
    world.messenger->deliver(world.lfs_peer(id), request(world, stage));
    world.run();
    const auto answer = world.reply(world.lfs_peer(id), 1);
    REQUIRE(answer);
    REQUIRE(answer->has_heartbeat_reply());
    return answer->heartbeat_reply();
  }
  void start(World& world) {
    const auto offer = beat(world, kAsks);
    REQUIRE(offer.verdict() == kAdmitted);
    incarnation = offer.incarnation();
    ++number;
    REQUIRE(beat(world, kConfirms).verdict() == kGoOn);
  }
};

// LFSs that have been admitted, and their owner.
struct Some {
  explicit Some(std::uint32_t count, std::uint32_t bevy = 0) : world(0, bevy) {
    for (std::uint32_t id = 1; id <= count; ++id) lfss.emplace_back(id).start(world);
    owner.emplace(world);
  }
  Lfs& lfs(std::uint32_t id) { return lfss[id - 1]; }
  // Time passes, in which only these are heard.
  void live(int seconds, const std::set<std::uint32_t>& heard) {
    for (int i = 0; i < seconds; ++i) {
      world.advance(1);
      for (const std::uint32_t id : heard) REQUIRE(lfs(id).beat(world).verdict() == kGoOn);
    }
  }
  void restart() {
    world.start();
    owner.emplace(world);
  }
  Result<Envelope> lost(std::uint32_t node, bool force = false) {
    Envelope request;
    request.mutable_node_lost()->set_node(node);
    request.mutable_node_lost()->set_force(force);
    return owner->ask(request);
  }
  Result<Envelope> rebuilt(std::uint32_t node, ViewState state) {
    Envelope request;
    request.set_capability(world.manage());
    request.mutable_node_rebuilt()->set_node(node);
    request.mutable_node_rebuilt()->set_state(state);
    return owner->ask(request);
  }
  Result<Envelope> replace(std::uint32_t node) {
    lfs(node).uuid = std::string(32, 'f');
    lfs(node).incarnation = lfs(node).number = 0;
    lfs(node).adopted = 1;
    Envelope request;
    request.mutable_replace_node()->set_node(node);
    request.mutable_replace_node()->set_uuid(lfs(node).uuid);
    return owner->ask(request);
  }
  proto::NodeInfo shown(std::uint32_t node) {
    const proto::NodesReply reply = owner->nodes();
    for (const auto& info : reply.nodes()) {
      if (info.id() == node) return info;
    }
    return {};
  }
  std::uint32_t state(std::uint32_t node) { return shown(node).view_state(); }
  // As the LFS would adopt it.
  proto::View view(std::uint32_t at) {
    const auto reply = lfs(at).beat(world);
    REQUIRE(reply.has_view());
    const auto view = open_view(world.key, reply.view());
    REQUIRE(view);
    CHECK(view->index() <= reply.moment().index());
    return *view;
  }

  World world;
  std::vector<Lfs> lfss;
  std::optional<Client> owner;
};

}  // namespace pif::server::testing
