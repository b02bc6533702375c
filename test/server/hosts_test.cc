// Several hosts, as the server sees them: which have an older description, and who says he is a node that there is.
#include "fixture.h"
#include "pif/wire/values.h"

namespace pif::server::testing {
namespace {

using enum wire::Verdict;

proto::HeartbeatReply beat_of(World& world, Envelope request) {
  const std::uint32_t id = request.heartbeat().node().id();
  world.messenger->sent.clear();
  world.messenger->deliver(world.lfs_peer(id), request);
  world.run();
  const auto answer = world.reply(world.lfs_peer(id), 1);
  REQUIRE(answer);
  REQUIRE(answer->has_heartbeat_reply());
  return answer->heartbeat_reply();
}

Description description_of(std::uint64_t edition) {
  Description out;
  out.edition = edition;
  for (const char* name : {"pif.toml", "keys/hosts/h1.pub"}) {
    out.files.emplace_back().set_name(name);
    out.files.back().set_content(std::to_string(edition));
  }
  return out;
}

struct Hosts {
  Hosts() {
    world.host = "h1";
    world.changed = description_of(7);
    world.start();
    world.heartbeats();
    world.advance(2);
  }
  proto::HeartbeatReply beat(const std::string& host, std::uint64_t edition) {
    Envelope request = world.heartbeat(1);
    request.mutable_heartbeat()->mutable_node()->set_host(host);
    request.mutable_heartbeat()->set_edition(edition);
    return beat_of(world, request);
  }
  World world{1};
};

TEST_CASE("an LFS on a host with an older description gets the newer one, and nobody else does") {
  Hosts hosts;
  const auto behind = hosts.beat("h2", 6);
  REQUIRE(behind.files_size() == 2);
  CHECK(behind.files(0).name() == "pif.toml");
  CHECK(behind.files(1).content() == "7");
  CHECK(hosts.beat("h2", 7).files_size() == 0);
  CHECK(hosts.beat("h2", 8).files_size() == 0);
  CHECK(hosts.beat("h1", 6).files_size() == 0);  // it reads the server's own
  CHECK(hosts.beat("", 0).files_size() == 0);    // of one host
}

TEST_CASE("a description that changes while the server runs counts from the next second on") {
  Hosts hosts;
  hosts.world.changed = description_of(9);
  hosts.world.advance(2);
  REQUIRE(hosts.beat("h2", 7).files_size() == 2);
  CHECK(hosts.beat("h2", 7).files(0).content() == "9");
  hosts.world.changed = description_of(10);
  hosts.world.changed->root_uuids[2] = std::string(32, '2');  // node 1 is in it no more
  hosts.world.advance(2);
  hosts.world.messenger->sent.clear();
  hosts.world.messenger->deliver(hosts.world.lfs_peer(1), hosts.world.heartbeat(1));
  hosts.world.run();
  const auto answer = hosts.world.reply(hosts.world.lfs_peer(1), 1);
  REQUIRE(answer);
  CHECK_THAT(answer->error().text(), Catch::Contains("not in pif.toml"));
}

// A process that says it is node 1.
Envelope node_1(const World& world, std::uint64_t machine, std::int64_t pid) {
  Envelope request = world.heartbeat(1);
  proto::NodeInfo& node = *request.mutable_heartbeat()->mutable_node();
  node.mutable_endpoints()->set_machine(machine);
  node.set_pid(pid);
  node.set_root("/disk/" + std::to_string(machine));
  node.set_host("h" + std::to_string(machine));
  return request;
}

TEST_CASE("a second process of one node, on another machine, is refused while the first is heard") {
  World world(1);
  CHECK(beat_of(world, node_1(world, 7, 100)).verdict() == kGoOn);
  const auto twin = beat_of(world, node_1(world, 9, 200));
  CHECK(twin.verdict() == kIsStale);
  for (const char* part : {"process 100 with /disk/7 on host h7", "process 200 with /disk/9 on host h9", "copy"})
    CHECK_THAT(twin.text(), Catch::Contains(part));
  CHECK(beat_of(world, node_1(world, 7, 100)).verdict() == kGoOn);  // the first goes on
  CHECK(Client(world).nodes().nodes(0).pid() == 100);
}

TEST_CASE("a node that starts again, or moves to another machine when it is heard no more, is welcome") {
  World world(1);
  CHECK(beat_of(world, node_1(world, 7, 100)).verdict() == kGoOn);
  CHECK(beat_of(world, node_1(world, 7, 101)).verdict() == kGoOn);
  world.advance(4);
  CHECK(beat_of(world, node_1(world, 9, 200)).verdict() == kGoOn);
  CHECK(Client(world).nodes().nodes(0).host() == "h9");
}

}  // namespace
}  // namespace pif::server::testing
