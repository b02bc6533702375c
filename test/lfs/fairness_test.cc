// One peer that asks an LFS for much, beside others that ask for little.
#include "node.h"

#include "pif/net/caller.h"
#include "pif/pattern/runs.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

constexpr std::size_t kFileBytes = 1'000'000;
constexpr auto kPatience = std::chrono::seconds(20);

net::Packet request(Peer& peer) {
  auto packet = peer.request(7, kMayRead);
  packet.envelope.set_credential(peer.credential);
  return packet;
}
// A byte of each chunk: all of the file is scanned for it.
net::Packet expensive(Peer& peer) {
  patterns::RunEncoder runs;
  for (std::uint64_t at = 0; at < kFileBytes; at += 4096) runs.add(at, 1);
  auto packet = request(peer);
  packet.envelope.mutable_read_pieces()->set_file(7);
  packet.body = buffer_of(runs.finish());
  return packet;
}
net::Packet cheap(Peer& peer) {
  auto packet = request(peer);
  packet.envelope.mutable_read()->set_file(7);
  packet.envelope.mutable_read()->set_first(42);
  packet.envelope.mutable_read()->set_count(1);
  return packet;
}
net::Packet stats_request() {
  net::Packet packet;
  packet.envelope.mutable_stats();
  return packet;
}

}  // namespace

TEST_CASE("a peer with a hundred expensive reads waiting does not delay another's single read by more than its turn") {
  const bool heavy_by_zmq = GENERATE(false, true);
  sim::World world(1);
  Node node(world);
  node.start();
  world.spawn_main("client", [&](sim::Actor& self) {
    Peer peer(self, node, 1000, true);
    const auto later = self.clock().wall_seconds() + 600;
    peer.credential = mint(node.key, Credential{SessionId(1), 1000, {1000}, later});
    const std::string bytes = pattern(kFileBytes, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    proto::Endpoints to;
    to.set_unix_path("sim:lfs0");
    to.set_ipc("sim:lfs0");
    net::Caller caller(self.messenger(), 1000);
    const auto by_unix = self.messenger().connect(to, net::Route::kUnix).value();
    const auto by_zmq = self.messenger().connect(to, net::Route::kIpc).value();
    const auto heavy = heavy_by_zmq ? by_zmq : by_unix, light = heavy_by_zmq ? by_unix : by_zmq;

    // All of it has come before the LFS looks.
    world.stall(world.find("lfs0").value(), std::chrono::seconds(2));
    std::vector<net::CallId> all;
    for (int i = 0; i < 100; ++i) all.push_back(caller.start(heavy, expensive(peer), kPatience, "lfs0"));
    const auto single = caller.start(light, cheap(peer), kPatience, "lfs0");
    const auto look = caller.start(light, stats_request(), kPatience, "lfs0");
    CHECK(bytes_of(caller.wait(single).value().body) == bytes.substr(42 * 100, 100));
    const auto stats = caller.wait(look).value().envelope.stats_reply();
    REQUIRE(stats.peers_waiting() == 1);
    CHECK(stats.peers(0).waiting() >= 98);
    CHECK(stats.peers(0).waiting_bytes() > 0);

    for (const auto call : all) CHECK(caller.wait(call).value().body.size() == (kFileBytes + 4095) / 4096);
    const auto after = caller.wait(caller.start(light, stats_request(), kPatience, "lfs0")).value();
    CHECK(after.envelope.stats_reply().peers_waiting() == 0);
  });
  world.run();
}
