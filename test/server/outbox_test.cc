// How LFSs are told of files: again until they have answered, whatever fails.
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

// The Settle requests that were sent and not looked at yet, by the peer they went to.
std::map<net::PeerId, Envelope> take_settles(World& world) {
  std::map<net::PeerId, Envelope> out;
  for (auto& [peer, envelope] : std::exchange(world.messenger->sent, {})) {
    if (envelope.has_settle()) out[peer] = std::move(envelope);
  }
  return out;
}

void answer(World& world, net::PeerId peer, const Envelope& settle) {
  Envelope reply;
  reply.set_version(kProtocolVersion);
  reply.set_id(settle.id());
  reply.mutable_settle_reply();
  world.messenger->deliver(peer, reply);
}

// Files on one LFS each, one for each of the four, made and removed.
void remove_one_of_each(World& world, Client& client) {
  std::vector<std::string> paths;
  for (std::uint32_t node = 1; node <= 4; ++node) {
    paths.push_back("/f" + std::to_string(node));
    auto request = Client::create_request(paths.back());
    request.mutable_create()->add_nodes(node);
    const auto made = client.ask(request);
    REQUIRE(made);
    REQUIRE(client.ask(Client::commit_request(made->create_reply().file())));
  }
  world.settles({1, 2, 3, 4});  // of their commits
  REQUIRE(client.ask(Client::remove_request(paths)));
}

TEST_CASE("LFSs whose answers the directory could not take, because its disk failed, are told again, all of them") {
  World world;
  Client client(world);
  remove_one_of_each(world, client);
  const auto first = take_settles(world);
  REQUIRE(first.size() == 4);
  for (const auto& [peer, settle] : first) answer(world, peer, settle);
  world.faults->fail_at(0, sim::Fault::kIoError, true);
  world.run();
  CHECK(take_settles(world).empty());  // not at once: it would go round as long as the disk fails
  world.faults->heal();
  world.live(3);
  const auto second = take_settles(world);
  CHECK(second.size() == 4);
  for (const auto& [peer, settle] : second) {
    CHECK(settle.settle().removed_size() == 1);
    answer(world, peer, settle);
  }
  world.live(3);
  CHECK(take_settles(world).empty());
  require_sound(world);
}

std::uint64_t put_on_first(Client& client, const std::string& path) {
  auto request = Client::create_request(path);
  request.mutable_create()->add_nodes(1);
  const auto made = client.ask(request);
  REQUIRE(made);
  REQUIRE(client.ask(Client::commit_request(made->create_reply().file())));
  return made->create_reply().file();
}

TEST_CASE("an LFS is told of a thousand files at once, and of the rest when it has answered") {
  World world;
  Client client(world);
  std::vector<std::string> paths;
  for (int i = 0; i < 1500; ++i) {
    paths.push_back("/f" + std::to_string(i));
    put_on_first(client, paths.back());
  }
  const auto told = [&] {  // how many of each kind, request by request
    std::vector<std::pair<int, int>> counts;
    for (const auto& settle : world.settles({1})[1])
      counts.emplace_back(settle.committed_size(), settle.removed_size());
    return counts;
  };
  CHECK(told() == std::vector<std::pair<int, int>>{{1, 0}, {1000, 0}, {499, 0}});  // the first was sent at once
  REQUIRE(client.ask(Client::remove_request(paths)));
  CHECK(told() == std::vector<std::pair<int, int>>{{0, 1000}, {0, 500}});
  CHECK(client.nodes().doomed() == 0);
}

TEST_CASE("an LFS that is down is told when it is up again, one that cannot be reached a second later") {
  World world;
  Client client(world);
  const auto file = put_on_first(client, "/f");
  world.settles({1});
  const auto live_without_first = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      for (std::uint32_t id = 2; id <= 4; ++id) world.messenger->deliver(world.lfs_peer(id), world.heartbeat(id));
      world.advance(1);
    }
  };
  live_without_first(11);
  REQUIRE(client.remove("/f") == Code::kOk);
  live_without_first(5);
  CHECK(world.settles({1}).empty());
  world.messenger->connect_error = Error{Code::kUnavailable, "nobody answers", {}};
  world.live(5);
  CHECK(take_settles(world).empty());
  world.messenger->connect_error.reset();
  world.live(2);
  const auto settles = world.settles({1});
  REQUIRE(settles.size() == 1);
  CHECK(settles.at(1).at(0).removed(0) == file);
  CHECK(client.nodes().doomed() == 0);
}

TEST_CASE("a turn that lasts longer than a tick comes to its end, and what has its time goes on in the next one") {
  World world;
  Client client(world);
  const auto send = world.messenger->on_send;
  world.messenger->on_send = [&](net::PeerId peer, const net::Packet& packet) {
    if (packet.envelope.has_settle()) world.clock.advance(std::chrono::seconds(3));  // as if the machine was busy
    send(peer, packet);
  };
  const auto file = put_on_first(client, "/f");
  world.run();
  REQUIRE(take_settles(world).size() == 1);
  world.live(11);  // nobody answers in time
  REQUIRE(client.remove("/f") == Code::kOk);
  const auto settles = world.settles({1});
  REQUIRE(settles.size() == 1);
  CHECK(settles.at(1).front().removed(0) == file);
  CHECK(client.nodes().doomed() == 0);
}

}  // namespace
}  // namespace pif::server::testing
