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

}  // namespace
}  // namespace pif::server::testing
