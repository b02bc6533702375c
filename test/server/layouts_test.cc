// Which LFSs a new file gets.
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

using Numbers = std::vector<std::uint32_t>;

struct Ask {
  std::uint32_t width = 0;
  Numbers nodes = {};
  Numbers bevies = {};
  std::uint32_t bevy = 0;
  bool same_host_ok = false;
};

Result<proto::FileLayout> layout(Client& client, const Ask& ask) {
  static int file = 0;
  auto request = Client::create_request("/f" + std::to_string(++file), true, ask.width);
  for (const auto node : ask.nodes) request.mutable_create()->add_nodes(node);
  for (const auto bevy : ask.bevies) request.mutable_create()->add_bevies(bevy);
  request.mutable_create()->set_bevy(ask.bevy);
  request.mutable_create()->set_same_host_ok(ask.same_host_ok);
  auto reply = client.ask(request);
  if (!reply) return fail(reply.error());
  return reply->create_reply().layout();
}
Numbers nodes_of(const Result<proto::FileLayout>& layout) { return {layout->nodes().begin(), layout->nodes().end()}; }
Numbers bevies_of(const Result<proto::FileLayout>& layout) {
  return {layout->bevies().begin(), layout->bevies().end()};
}

TEST_CASE("a file gets all LFSs that are up, from the one whose turn it is, or as many as asked for, or those named") {
  World world(6);
  Client client(world);
  CHECK(nodes_of(layout(client, {})) == Numbers{1, 2, 3, 4, 5, 6});
  CHECK(nodes_of(layout(client, {.width = 2})) == Numbers{2, 3});
  CHECK(nodes_of(layout(client, {.nodes = {5, 2}})) == Numbers{5, 2});
  CHECK(nodes_of(layout(client, {})) == Numbers{3, 4, 5, 6, 1, 2});
  for (int i = 0; i < 3; ++i)
    CHECK(nodes_of(layout(client, {.width = 1})) == Numbers{4 + static_cast<std::uint32_t>(i)});
  CHECK(nodes_of(layout(client, {.width = 2})) == Numbers{1, 2});
}

TEST_CASE("files begin on each LFS equally often, whatever else is made between them") {
  World world(4);
  Client client(world);
  std::map<std::uint32_t, int> begun, used;
  for (int i = 0; i < 40; ++i) {
    REQUIRE(client.mkdir("/d" + std::to_string(i)));
    const auto nodes = nodes_of(layout(client, {.width = 2}));
    ++begun[nodes[0]];
    for (const auto node : nodes) ++used[node];
    CHECK(layout(client, {.nodes = {3, 1}}));
    CHECK_FALSE(layout(client, {.width = 5}));
  }
  for (std::uint32_t node = 1; node <= 4; ++node) {
    CHECK(begun[node] == 10);
    CHECK(used[node] == 20);
  }
}

// What an LFS says of itself.
void tell(World& world, std::uint32_t id, const std::function<void(proto::NodeInfo&)>& change) {
  auto beat = world.heartbeat(id);
  change(*beat.mutable_heartbeat()->mutable_node());
  world.messenger->deliver(world.lfs_peer(id), beat);
  world.run();
}

TEST_CASE("an LFS that is full gets new files only where the others are not enough, and begins none then") {
  World world(4);
  Client client(world);
  tell(world, 2, [](auto& node) { node.set_full(true); });
  for (int i = 0; i < 6; ++i) {
    for (const std::uint32_t width : {0, 1, 3}) {
      const auto nodes = nodes_of(layout(client, {.width = width}));
      CHECK(nodes.size() == (width == 0 ? 3 : width));
      CHECK(std::count(nodes.begin(), nodes.end(), 2) == 0);
    }
    CHECK(nodes_of(layout(client, {.width = 4})).back() == 2);
  }
  CHECK(nodes_of(layout(client, {.nodes = {2}})) == Numbers{2});
  for (const std::uint32_t id : {1u, 3u, 4u}) tell(world, id, [](auto& node) { node.set_full(true); });
  CHECK(nodes_of(layout(client, {})).size() == 4);
  tell(world, 2, [](auto&) {});
  CHECK(nodes_of(layout(client, {})) == Numbers{2});
}

// Of each node those of the companion bevies, over many files.
using Companions = std::map<std::uint32_t, std::set<std::uint32_t>>;

void add_companions(const Result<proto::FileLayout>& made, Companions& companions) {
  REQUIRE(made);
  const Numbers nodes = nodes_of(made), bevies = bevies_of(made);
  std::size_t at = 0;
  std::vector<Numbers> parts;
  for (const auto size : bevies) {
    parts.emplace_back(nodes.begin() + static_cast<int>(at), nodes.begin() + static_cast<int>(at + size));
    at += size;
  }
  REQUIRE(at == nodes.size());
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Numbers& other = parts[(part + parts.size() / 2) % parts.size()];
    for (const auto node : parts[part]) companions[node].insert(other.begin(), other.end());
  }
}

TEST_CASE("with bevies files begin everywhere, on all pairs, and a node's companions are the same in all files") {
  World world(14);
  Client client(world);
  Companions companions;
  std::map<std::uint32_t, int> begun;
  for (const std::uint32_t width : {0u, 4u, 8u}) {
    for (int i = 0; i < 24; ++i) {
      const auto made = layout(client, {.width = width, .bevy = 2});
      add_companions(made, companions);
      ++begun[made->nodes(0)];
    }
  }
  CHECK(companions.size() == 12);
  for (const auto& [node, others] : companions) {
    CHECK(others.size() == 2);
    CHECK(begun[node] == 6);
  }
  for (int i = 0; i < 12; ++i) add_companions(layout(client, {.bevies = {2, 2, 2, 2}}), companions);
  for (const auto& [node, others] : companions) CHECK(others.size() == 2);
}

TEST_CASE("bevies of several sizes keep their order and their companions") {
  World world(20);
  Client client(world);
  Companions companions;
  std::set<std::uint32_t> begun;
  for (int i = 0; i < 40; ++i) {
    const auto made = layout(client, {.bevies = {3, 2, 3, 2}});
    CHECK(bevies_of(made) == Numbers{3, 2, 3, 2});
    CHECK(made->form() == 1);  // its LFSs keep parity
    add_companions(made, companions);
    begun.insert(made->nodes(0));
  }
  CHECK(companions.size() == 20);
  CHECK(begun.size() == 12);  // those in bevies of three
  for (const auto& [node, others] : companions) CHECK(others.size() == (begun.contains(node) ? 3 : 2));
}

TEST_CASE("where an LFS is down or full the other pairs get the files, and only for want of pairs are others made") {
  World world(8);
  Client client(world);
  Companions before, after;
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.width = 8, .bevy = 2}), before);
  tell(world, 2, [](auto& node) { node.set_full(true); });
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.bevy = 2}), after);
  CHECK(after.size() == 4);
  for (const auto& [node, others] : after) CHECK(others == before[node]);
  CHECK(layout(client, {.width = 8, .bevy = 2}));
  for (int i = 0; i < 4; ++i) {
    world.clock.advance(std::chrono::seconds(1));
    for (const std::uint32_t id : {1u, 3u, 4u, 5u, 6u, 8u})
      world.messenger->deliver(world.lfs_peer(id), world.heartbeat(id));
    world.run();
  }
  const auto made = layout(client, {.width = 4, .bevy = 2});  // of either pair one is not there
  REQUIRE(made);
  for (const auto node : nodes_of(made)) CHECK((node != 2 && node != 7));
  CHECK(layout(client, {.width = 8, .bevy = 2}).error().code == Code::kUnavailable);
}

// These are not heard for a while, then the last of them is declared lost.
void lose(World& world, Client& client, const Numbers& silent) {
  for (int i = 0; i < 11; ++i) {
    world.clock.advance(std::chrono::seconds(1));
    for (std::uint32_t id = 1; id <= 8; ++id) {
      const bool is_silent = std::count(silent.begin(), silent.end(), id) > 0;
      if (!is_silent) world.messenger->deliver(world.lfs_peer(id), world.heartbeat(id));
    }
    world.run();
  }
  Envelope request;
  request.mutable_node_lost()->set_node(silent.back());
  request.mutable_node_lost()->set_force(true);
  REQUIRE(client.ask(request));
}

TEST_CASE("an LFS that is absent gets files with parity where other pairs are too few, and one of a pair at most") {
  World world(8);
  Client client(world);
  Companions before, after;
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.width = 8, .bevy = 2}), before);
  lose(world, client, {2});
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.bevy = 2}), after);  // pairs without it suffice
  CHECK(after.size() == 4);
  CHECK_FALSE(after.contains(2));
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.width = 8, .bevy = 2}), after);
  CHECK(after == before);
  CHECK(nodes_of(layout(client, {.bevy = 4})).size() == 8);
  CHECK(layout(client, {.nodes = {1, 2, 3, 4}, .bevies = {2, 2}}));
  CHECK(nodes_of(layout(client, {})).size() == 7);  // without parity nobody has its rows
  CHECK_FALSE(layout(client, {.nodes = {1, 2}}));
  CHECK(layout(client, {.width = 8}).error().code == Code::kUnavailable);
}

TEST_CASE("while one LFS of each pair is absent a narrow file gets a pair, not LFSs of several") {
  World world(8);
  Client client(world);
  Companions before, after;
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.width = 8, .bevy = 2}), before);
  lose(world, client, {2});
  lose(world, client, {2, 6});
  for (int i = 0; i < 8; ++i) add_companions(layout(client, {.width = 4, .bevy = 2}), after);
  CHECK(after == before);
}

TEST_CASE("two absent LFSs of a pair of companions are named, and two of different pairs do no harm") {
  World world(8);
  Client client(world);
  lose(world, client, {2});
  lose(world, client, {2, 6});
  CHECK(nodes_of(layout(client, {.width = 8, .bevy = 2})).size() == 8);
  lose(world, client, {2, 6, 4});
  for (const Ask& ask : {Ask{.width = 8, .bevy = 2}, Ask{.nodes = {1, 2, 3, 4}, .bevies = {2, 2}}}) {
    const auto refused = layout(client, ask);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kUnavailable);
    CHECK_THAT(refused.error().text, Catch::StartsWith("lfs1 and lfs3 are both absent"));
  }
  CHECK(layout(client, {.nodes = {1, 2, 3, 5}, .bevies = {2, 2}}));
}

TEST_CASE("an LFS that is only silent is not used, with parity neither") {
  World world(8);
  Client client(world);
  for (int i = 0; i < 11; ++i) {
    world.clock.advance(std::chrono::seconds(1));
    for (const std::uint32_t id : {1u, 3u, 4u, 5u, 6u, 7u, 8u})
      world.messenger->deliver(world.lfs_peer(id), world.heartbeat(id));
    world.run();
  }
  CHECK(layout(client, {.width = 8, .bevy = 2}).error().code == Code::kUnavailable);
  CHECK(layout(client, {.nodes = {1, 2, 3, 4}, .bevies = {2, 2}}).error().text == "node 2 (lfs1) is down");
}

// LFSs 1 to n are on these machines.
void place(World& world, const std::vector<std::uint64_t>& machines) {
  std::uint32_t id = 0;
  for (const auto machine : machines)
    tell(world, ++id, [&](auto& node) { node.mutable_endpoints()->set_machine(machine); });
}

TEST_CASE("companions are on different machines where there are several") {
  const std::vector<std::uint64_t> machines =
      GENERATE(std::vector<std::uint64_t>{7, 7, 7, 7, 9, 9, 9, 9}, std::vector<std::uint64_t>{7, 9, 7, 9, 7, 9, 7, 9},
               std::vector<std::uint64_t>{7, 8, 9, 6, 7, 8, 9, 6}, std::vector<std::uint64_t>{7, 7, 8, 8, 9, 9, 6, 6});
  World world(8);
  Client client(world);
  place(world, machines);
  Companions companions;
  for (int i = 0; i < 16; ++i) add_companions(layout(client, {.width = 8, .bevy = 2}), companions);
  for (const auto& [node, others] : companions) {
    CHECK(others.size() == 2);
    for (const auto other : others) CHECK(machines[node - 1] != machines[other - 1]);
  }
}

TEST_CASE("companions are on different hosts, whatever is known of machines") {
  World world(8);
  Client client(world);
  for (std::uint32_t id = 1; id <= 8; ++id)
    tell(world, id, [&](auto& node) {
      node.set_host(id <= 4 ? "h1" : "h2");
      node.mutable_endpoints()->set_machine(id % 2 == 0 ? id : 0);
    });
  Companions companions;
  for (int i = 0; i < 16; ++i) add_companions(layout(client, {.width = 8, .bevy = 2}), companions);
  for (const auto& [node, others] : companions) {
    for (const auto other : others) CHECK((node <= 4) != (other <= 4));
  }
}

TEST_CASE("companions that would be on one machine are refused, unless that is accepted") {
  World world(8);
  Client client(world);
  REQUIRE(layout(client, {.width = 8, .bevy = 2}));  // of machines nothing is known
  place(world, {7, 7, 7, 7, 7, 7, 9, 9});
  CHECK(nodes_of(layout(client, {.bevy = 2})).size() == 4);
  const auto refused = [&](const Ask& ask) {
    const auto made = layout(client, ask);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Code::kInvalid);
    CHECK_THAT(made.error().text, Catch::Contains("--same-host-ok"));
  };
  refused({.width = 8, .bevy = 2});
  refused({.nodes = {1, 2, 3, 4}, .bevies = {2, 2}});
  refused({.nodes = {1, 7, 8, 2}, .bevies = {2, 2}});
  CHECK(layout(client, {.nodes = {1, 2, 7, 8}, .bevies = {2, 2}}));
  CHECK(nodes_of(layout(client, {.nodes = {1, 2, 3, 4}, .bevies = {2, 2}, .same_host_ok = true})) ==
        Numbers{1, 2, 3, 4});
  CHECK(nodes_of(layout(client, {.width = 8, .bevy = 2, .same_host_ok = true})).size() == 8);
  CHECK(nodes_of(layout(client, {})).size() == 8);  // without parity it does not matter
  CHECK(layout(client, {})->form() == 0);
}

TEST_CASE("bevies: the largest width that fits, explicit sizes, and sizes for all") {
  World world(7);
  Client client(world);
  CHECK(bevies_of(layout(client, {.bevy = 3})) == Numbers{3, 3});
  CHECK(nodes_of(layout(client, {.bevy = 2})).size() == 4);
  CHECK(bevies_of(layout(client, {.width = 4, .bevy = 2})) == Numbers{2, 2});
  CHECK(bevies_of(layout(client, {.bevies = {3, 3}})) == Numbers{3, 3});
  CHECK(nodes_of(layout(client, {.bevies = {3, 3}})).size() == 6);
}

TEST_CASE("layouts that cannot be are refused with the numbers that matter") {
  World world(4);
  Client client(world);
  const auto refused = [&](const Ask& ask, Code code, const std::string& text) {
    const auto made = layout(client, ask);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == code);
    CHECK_THAT(made.error().text, Catch::Contains(text));
  };
  refused({.width = 5}, Code::kInvalid, "more than the 4 LFSs");
  refused({.nodes = {1, 9}}, Code::kInvalid, "no node 9");
  refused({.nodes = {1, 2, 1}}, Code::kInvalid, "node 1 (lfs0) is named twice");
  refused({.width = 3, .nodes = {1, 2}}, Code::kInvalid, "width of 3 with 2 nodes");
  refused({.bevy = 3}, Code::kInvalid, "at least 6 LFSs, and 4");
  refused({.width = 3, .bevy = 2}, Code::kInvalid, "multiple of 4, not 3");
  refused({.width = 4, .bevy = 1}, Code::kInvalid, "at least 2");
  refused({.width = 4, .bevies = {2, 3}}, Code::kInvalid, "");
  refused({.bevies = {2, 2}, .bevy = 2}, Code::kInvalid, "not both");
}

TEST_CASE("a silent LFS is suspect, then down: new files do without it, and naming it is an error") {
  World world(3);
  Client client(world);
  for (int i = 0; i < 5; ++i) {
    world.clock.advance(std::chrono::seconds(1));
    world.messenger->deliver(world.lfs_peer(1), world.heartbeat(1));
    world.messenger->deliver(world.lfs_peer(2), world.heartbeat(2));
    world.run();
  }
  CHECK(client.nodes().nodes(2).state() == 2);
  CHECK(client.nodes().nodes(2).silent_ms() == 5000);
  CHECK(nodes_of(layout(client, {})) == Numbers{1, 2});
  CHECK(layout(client, {.width = 3}).error().code == Code::kUnavailable);  // not wrong, only not now
  CHECK(layout(client, {.width = 4}).error().code == Code::kInvalid);
  world.advance(6);
  CHECK(client.nodes().nodes(2).state() == 3);
  CHECK(layout(client, {.nodes = {3}}).error().text == "node 3 (lfs2) is down");
  CHECK(layout(client, {}).error().code == Code::kUnavailable);
  world.heartbeats();
  CHECK(nodes_of(layout(client, {})) == Numbers{2, 3, 1});
}

TEST_CASE("after a restart new files are as wide as before, though no LFS was heard yet, but none counts as up") {
  World world(4);
  world.start();
  Client client(world);
  CHECK(nodes_of(layout(client, {})).size() == 4);
  CHECK(client.nodes().nodes(0).state() == 2);
  world.advance(4);
  CHECK(layout(client, {}).error().code == Code::kUnavailable);
}

TEST_CASE("the cluster's default bevy is for files that ask for none") {
  World world(4, 2);
  Client client(world);
  CHECK(bevies_of(layout(client, {})) == Numbers{2, 2});
  CHECK(layout(client, {.width = 3}).error().code == Code::kInvalid);
}

TEST_CASE("record formats are checked") {
  World world;
  Client client(world);
  auto request = Client::create_request("/f", true);
  request.mutable_create()->mutable_format()->set_record_length(0);
  CHECK(client.ask(request).error().code == Code::kInvalid);
  request.mutable_create()->mutable_format()->set_record_length(kRecordLengthMax + 1);
  CHECK(client.ask(request).error().code == Code::kInvalid);
  request.mutable_create()->mutable_format()->set_kind(9);
  CHECK(client.ask(request).error().code == Code::kInvalid);
}

TEST_CASE("a request for nodes waits until enough are up, shows that it lives, and gives up at its deadline") {
  World world(2);
  Client client(world);
  Envelope request;
  request.mutable_nodes()->set_wait_up(3);
  request.set_timeout_ms(10'000);
  const std::uint64_t id = client.post(request);
  world.messenger->forget_replies();
  world.run();
  CHECK_FALSE(world.reply(client.peer(), id));
  world.live(1);
  CHECK(world.reply(client.peer(), id, true));
  world.messenger->deliver(world.lfs_peer(3), world.heartbeat(3));
  world.run();
  REQUIRE(client.answer(id));
  CHECK(client.answer(id)->nodes_reply().nodes_size() == 3);

  request.mutable_nodes()->set_wait_up(9);
  const std::uint64_t late = client.post(request);
  world.run();
  world.live(8);
  CHECK_FALSE(world.reply(client.peer(), late));
  world.live(1);
  CHECK(world.reply(client.peer(), late));
}

Envelope wait_for(std::uint32_t lfss) {
  Envelope request;
  request.set_timeout_ms(60'000);
  request.mutable_nodes()->set_wait_up(lfss);
  return request;
}

TEST_CASE("nobody waits for LFSs any more whose connection is gone") {
  World world(2);
  Client gone(world), stays(world);
  const auto lost = gone.post(wait_for(3)), kept = stays.post(wait_for(3));
  gone.close();
  world.live(3);
  CHECK_FALSE(world.reply(gone.peer(), lost, true));
  CHECK(world.reply(stays.peer(), kept, true));
}

TEST_CASE("the requests of one user that wait for LFSs are so many, and others may wait too") {
  World world(2);
  Client anna(world, 1001), bert(world, 1002), owner(world);
  constexpr int kWaitingOfOne = 4096;
  for (int i = 0; i < kWaitingOfOne; ++i) anna.post(wait_for(3));
  world.run();
  world.messenger->forget_replies();
  const auto refused = anna.ask(wait_for(3));
  CHECK(refused.error().code == Code::kBusy);
  CHECK_THAT(refused.error().text, Catch::Contains("4096 requests of uid 1001"));
  CHECK(bert.ask(wait_for(3)).error().code == Code::kTimeout);  // not answered yet
  for (int i = 0; i <= kWaitingOfOne; ++i) owner.post(wait_for(3));
  CHECK(owner.ask(wait_for(3)).error().code == Code::kTimeout);
  anna.close();
  anna.connect();
  CHECK(anna.ask(wait_for(3)).error().code == Code::kTimeout);
}

}  // namespace
}  // namespace pif::server::testing
