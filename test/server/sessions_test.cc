// Who asks, over connections that know it and over those that do not; and what the server refuses to do too much of.
#include "pif/base/path.h"
#include "pif/kv/value.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

using Via = net::Identity::Via;

constexpr std::size_t kSessionsOfOne = 4096;

struct Asker {
  Asker(World& world_in, net::Identity identity) : world(world_in), peer(world.messenger->add(std::move(identity))) {}

  Envelope ask(Envelope request, const std::string& credential) {
    request.set_version(kProtocolVersion);
    request.set_id(++id);
    request.set_credential(credential);
    world.messenger->deliver(peer, request);
    world.run();
    const auto answer = world.reply(peer, id);
    REQUIRE(answer);
    return *answer;
  }
  Envelope hello(const std::string& credential = {}) {
    Envelope request;
    request.mutable_hello()->set_program("asker");
    return ask(std::move(request), credential);
  }
  Code list(const std::string& credential) {
    Envelope request;
    request.mutable_list()->set_path("/");
    return static_cast<Code>(ask(std::move(request), credential).error().code());
  }

  World& world;
  net::PeerId peer;
  std::uint64_t id = 0;
};

// As the server counts them.
std::size_t sessions_of(World& world) {
  Client root(world, 0);
  return root.nodes().sessions() - 1;
}

Code code_of(const Envelope& reply) { return static_cast<Code>(reply.error().code()); }
net::Identity known(std::uint32_t uid) { return {.via = Via::kUnix, .has_uid = true, .uid = uid, .gids = {uid}}; }
Code code_of(const Result<Envelope>& reply) { return reply ? Code::kOk : reply.error().code; }

}  // namespace

TEST_CASE("over ZeroMQ a session is resumed by its credential, and never begun") {
  World world;
  Client client(world, 1000);
  Asker remote(world, {.via = Via::kIpc});
  CHECK(code_of(remote.hello()) == Code::kPermission);
  CHECK(code_of(remote.hello("nonsense")) == Code::kBadCapability);
  CHECK(remote.list("") == Code::kBadCapability);
  const auto resumed = remote.hello(client.credential());
  CHECK(resumed.hello_reply().session() == client.session());
  CHECK(resumed.hello_reply().uid() == 1000);
  CHECK(remote.list(resumed.hello_reply().credential()) == Code::kOk);
  CHECK(remote.list(resumed.hello_reply().credential()) == Code::kOk);
  CHECK(remote.list("") == Code::kBadCapability);  // each request needs its own
  world.clock.advance(std::chrono::hours(24 * 365));
  CHECK(remote.list(resumed.hello_reply().credential()) == Code::kBadCapability);
}

TEST_CASE("whom the connection vouches for goes on with his session by a credential that has expired") {
  World world;
  Asker here(world, known(1000)), there(world, known(1000)), other(world, known(1001)),
      remote(world, {.via = Via::kIpc});
  const auto first = here.hello().hello_reply();
  world.clock.advance(std::chrono::hours(24 * 8));
  CHECK(code_of(remote.hello(first.credential())) == Code::kBadCapability);
  CHECK(other.hello(first.credential()).hello_reply().session() != first.session());
  CHECK(here.list(first.credential()) == Code::kBadCapability);
  const auto again = there.hello(first.credential()).hello_reply();
  CHECK(again.session() == first.session());
  CHECK(remote.list(again.credential()) == Code::kOk);
}

TEST_CASE("who the kernel knows needs no credential, and gets nothing by another's") {
  World world;
  Client client(world, 1000);
  Asker local(world, known(1001));
  CHECK(local.list("") == Code::kBadCapability);            // before Hello
  const auto mine = local.hello("nonsense").hello_reply();  // a new session all the same
  CHECK(mine.uid() == 1001);
  CHECK(local.list("") == Code::kOk);
  CHECK(local.list(client.credential()) == Code::kPermission);
  CHECK(local.hello(client.credential()).hello_reply().session() != client.session());
  Asker root(world, known(0));
  CHECK(root.list(client.credential()) == Code::kOk);  // root may act for others
}

TEST_CASE("a peer that goes over to another session leaves the first, which then ends") {
  World world;
  Client first(world);
  const auto pending = first.create("/p");
  REQUIRE(pending);
  Asker mover(world, known(500));
  CHECK(mover.list(first.credential()) == Code::kOk);
  first.close();
  Client second(world);
  CHECK(mover.list(second.credential()) == Code::kOk);
  world.live(200);
  CHECK(code_of(second.ask(Client::commit_request(pending->file()))) == Code::kStaleFile);
}

TEST_CASE("more groups than a credential carries are cut") {
  World world;
  std::vector<std::uint32_t> gids(kGroupsMax + 10);
  for (std::size_t i = 0; i < gids.size(); ++i) gids[i] = 100 + static_cast<std::uint32_t>(i);
  Client owner(world);
  auto folder = Client::folder_request("/d", false, 0770);
  REQUIRE(owner.ask(folder));
  const auto give_to = [&](std::uint32_t group) {
    Envelope request;
    request.mutable_set_attributes()->set_path("/d");
    request.mutable_set_attributes()->set_group(group);
    REQUIRE(owner.ask(request));
  };
  Client many(world, 1000, gids);
  give_to(gids[kGroupsMax]);
  CHECK(many.list("/d"));
  give_to(gids[kGroupsMax + 1]);
  CHECK(many.list("/d").error().code == Code::kPermission);
}

TEST_CASE("a credential of a key that is no longer accepted is good only where the connection itself says who it is") {
  World world;
  KeyRing keys(world.key);
  world.server.reset();
  world.server = std::make_unique<Server>(Config{.cluster = "c1", .key = keys, .owner_uid = 500, .gather_max = {}},
                                          pif::server::World{*world.messenger, *world.store, world.entropy});
  REQUIRE(world.server->open());
  Asker here(world, known(1000)), remote(world, {.via = Via::kIpc});
  const std::string before = here.hello().hello_reply().credential();
  CHECK(remote.list(before) == Code::kOk);
  ClusterKey next;
  keys.set(next, world.key);
  CHECK(remote.list(before) == Code::kOk);
  const std::string after = here.hello(before).hello_reply().credential();
  keys.set(next, std::nullopt);
  CHECK(remote.list(before) == Code::kBadCapability);
  CHECK(here.list(after) == Code::kOk);
  CHECK(remote.list(after) == Code::kOk);
  CHECK(here.hello(before).hello_reply().credential() != before);  // the same session goes on
}

TEST_CASE("a session whose stored answer is damaged is not resumed after a restart, and others are") {
  World world;
  Client harmed(world, 500), whole(world, 500);
  REQUIRE(harmed.mkdir("/a"));
  REQUIRE(whole.mkdir("/b"));
  world.server.reset();
  world.server = std::make_unique<Server>(Config{.cluster = "c1", .key = world.key, .owner_uid = 500, .gather_max = {}},
                                          pif::server::World{*world.messenger, *world.store, world.entropy});
  REQUIRE(world.server->open());
  auto txn = std::move(world.store->write()).value();
  REQUIRE(txn->put(3, kv::key_u64(harmed.session()), kv::seal_value("\xff\xff")));
  REQUIRE(txn->commit());
  txn.reset();
  CHECK(Asker(world, known(500)).list(harmed.credential()) == Code::kCorrupt);
  CHECK(Asker(world, known(500)).list(whole.credential()) == Code::kOk);
}

TEST_CASE("a program with a long name of many languages is named in an error, as far as there is room") {
  World world;
  Client owner(world);
  owner.put("/f");
  for (const std::string begin : {"", "x", "xy", "xyz"}) {
    std::string name = begin;
    for (int i = 0; i < 30; ++i) name += "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";  // of two, three and four bytes
    Asker holder(world, known(1001));
    Envelope hello, open;
    hello.mutable_hello()->set_program(name);
    REQUIRE(code_of(holder.ask(hello, {})) == Code::kOk);
    open.mutable_open()->set_path("/f");
    open.mutable_open()->set_rights(kMayRead);
    open.mutable_open()->set_hold(true);
    REQUIRE(code_of(holder.ask(open, {})) == Code::kOk);
    const auto refused = owner.open("/f", kMayWrite);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBusy);
    CHECK(is_utf8(refused.error().text));
    CHECK_THAT(refused.error().text, Catch::Contains(name.substr(0, 190)));
    CHECK(refused.error().text.find(name.substr(0, 201)) == std::string::npos);
    world.messenger->close(holder.peer);
    world.run();
  }
}

TEST_CASE("requests for too much at once, or for what is not a thing to ask for, are refused") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  const auto file = client.put("/f");
  Envelope stat;
  for (int i = 0; i < 5000; ++i) stat.mutable_stat()->add_paths("/f");
  CHECK(code_of(client.ask(stat)) == Code::kTooLarge);
  CHECK(code_of(client.ask(Client::remove_request(std::vector<std::string>(5000, "/x")))) == Code::kTooLarge);
  CHECK(client.list("relative").error().code == Code::kInvalid);
  CHECK(client.stat("relative").error().code == Code::kInvalid);
  CHECK(client.remove("/nothing", true) == Code::kNotFound);
  CHECK(client.remove("/nothing/x", true) == Code::kNotFound);
  CHECK(client.open("/d").error().code == Code::kIsDirectory);
  CHECK(client.open("/f", 0).error().code == Code::kInvalid);
  CHECK(client.open("/f", kMayCreate).error().code == Code::kInvalid);
  CHECK(client.reopen(file + 1000).error().code == Code::kStaleFile);
  CHECK(client.create("/d").error().code == Code::kIsDirectory);
  auto format = Client::create_request("/x");
  format.mutable_create()->mutable_format()->set_kind(256);
  CHECK(code_of(client.ask(format)) == Code::kInvalid);
  format.mutable_create()->mutable_format()->set_kind(1);
  format.mutable_create()->mutable_format()->set_delimiter(256);
  CHECK(code_of(client.ask(format)) == Code::kInvalid);
  auto nameless = Client::create_request("/x");
  (*nameless.mutable_create()->mutable_named())[""] = "value";
  CHECK(code_of(client.ask(nameless)) == Code::kInvalid);
  Envelope abort;
  abort.mutable_abort()->set_file(file);
  CHECK(code_of(client.ask(abort)) == Code::kInvalid);
  abort.mutable_abort()->set_file(file + 1000);
  CHECK(code_of(client.ask(abort)) == Code::kOk);  // nothing to abort
  Envelope states;
  states.mutable_file_states()->add_files(file);
  CHECK(code_of(client.ask(states)) == Code::kBadCapability);
  Envelope attributes;
  attributes.mutable_set_attributes()->set_path("relative");
  CHECK(code_of(client.ask(attributes)) == Code::kInvalid);
  attributes.mutable_set_attributes()->set_path("/nothing");
  CHECK(code_of(client.ask(attributes)) == Code::kNotFound);
}

TEST_CASE("an LFS asks with the right to manage, of not too many files, and tells of itself what is needed") {
  World world;
  const auto file = Client(world).put("/f");
  Asker lfs(world, known(500));
  const auto ask = [&](const std::function<void(Envelope&)>& fill) {
    Envelope request;
    request.set_capability(world.manage());
    fill(request);
    return lfs.ask(std::move(request), {});
  };
  const auto states =
      ask([&](Envelope& e) { e.mutable_file_states()->add_files(file), e.mutable_file_states()->add_files(999); });
  CHECK(states.file_states_reply().states(0) == 2);
  CHECK(states.file_states_reply().states(1) == 4);
  CHECK(code_of(ask([](Envelope& e) {
          for (std::uint64_t i = 0; i <= 100'000; ++i) e.mutable_file_states()->add_files(i);
        })) == Code::kTooLarge);
  world.faults->fail_at(0, sim::Fault::kIoError, true);
  CHECK(code_of(ask([&](Envelope& e) { e.mutable_file_states()->add_files(file); })) == Code::kIo);
  world.faults->heal();
  const auto beat = [&](const std::function<void(proto::NodeInfo&)>& change) {
    return code_of(ask([&](Envelope& e) {
      auto& node = *e.mutable_heartbeat()->mutable_node();
      node.set_id(9);
      node.set_name("lfs8");
      change(node);
    }));
  };
  CHECK(beat([](auto& n) { n.set_id(0); }) == Code::kInvalid);
  CHECK(beat([](auto& n) { n.clear_name(); }) == Code::kInvalid);
  world.faults->fail_at(0, sim::Fault::kNoSpace, true);
  CHECK(beat([](auto&) {}) == Code::kNoSpace);
  world.faults->heal();
  const auto endpoints = [&](const std::function<void(proto::Endpoints&)>& change) {
    CHECK(beat([&](auto& n) { change(*n.mutable_endpoints()); }) == Code::kOk);
    const auto nodes = Client(world).nodes();
    const auto& told = nodes.nodes(nodes.nodes_size() - 1).endpoints();
    proto::Endpoints wanted;
    change(wanted);
    CHECK(told.SerializeAsString() == wanted.SerializeAsString());
  };
  endpoints([](auto& e) { e.set_unix_path("a"); });
  endpoints([](auto& e) { e.set_ipc("b"); });
  endpoints([](auto& e) { e.set_tcp("c"); });
  endpoints([](auto& e) { e.set_curve_key("d"); });
  CHECK(beat([](auto& n) { n.set_state(4); }) == Code::kOk);
  const auto nodes = Client(world).nodes();
  CHECK(nodes.nodes(nodes.nodes_size() - 1).state() == 4);  // draining
}

TEST_CASE("a connection that says Hello again and again has one session") {
  World world;
  Asker local(world, known(1001));
  const auto first = local.hello().hello_reply().session();
  for (std::size_t i = 0; i < kSessionsOfOne; ++i) {
    world.messenger->sent.clear();
    REQUIRE(local.hello().hello_reply().session() == first);
  }
  CHECK(local.hello("nonsense").hello_reply().session() == first);
  CHECK(Asker(world, known(1001)).hello().hello_reply().session() != first);
  Asker remote(world, {.via = Via::kCurve, .has_uid = true, .uid = 1001, .gids = {1001}});
  CHECK(remote.hello().hello_reply().session() != remote.hello().hello_reply().session());
}

TEST_CASE("root's connection that spoke for another goes on with a session of root's at its Hello") {
  World world;
  Client anna(world, 1001);
  Asker root(world, known(0));
  CHECK(root.list(anna.credential()) == Code::kOk);
  CHECK(root.hello().hello_reply().uid() == 0);
}

TEST_CASE("one user has a quarter of the sessions, and what his programs leave behind is free within a second") {
  World world;
  const auto greet = [&](std::uint32_t uid) {
    world.messenger->sent.clear();
    Asker one(world, known(uid));
    return std::pair(one.peer, one.hello().error());
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<net::PeerId> peers;
    for (std::size_t i = 0; i < kSessionsOfOne; ++i) {
      const auto [peer, error] = greet(1001);
      REQUIRE(error.code() == 0);
      peers.push_back(peer);
    }
    const auto refused = greet(1001).second;
    CHECK(refused.code() == static_cast<std::uint32_t>(Code::kBusy));
    CHECK_THAT(refused.text(), Catch::Contains("uid 1001 has 4096 sessions"));
    CHECK(greet(1002).second.code() == 0);
    for (const auto peer : peers) world.messenger->close(peer);
    world.run();
    world.advance(1);
  }
  for (std::size_t i = 0; i <= kSessionsOfOne; ++i) REQUIRE(greet(500).second.code() == 0);  // the owner
}

// A program that talks to the server over ipc: the Unix socket says who it is.
struct IpcProgram {
  IpcProgram(World& world_in, std::uint32_t uid)
      : world(world_in), local(world, known(uid)), remote(world, {.via = Via::kIpc}) {
    const Envelope greeted = local.hello();
    error = code_of(greeted);
    if (error != Code::kOk) return;
    credential = greeted.hello_reply().credential();
    error = code_of(remote.hello(credential));
    world.messenger->forget_replies();
  }
  void say_bye() {
    Envelope bye;
    bye.set_version(kProtocolVersion);
    bye.set_credential(credential);
    bye.mutable_bye();
    world.messenger->deliver(remote.peer, bye);
    world.messenger->close(local.peer);
  }
  void die() {
    world.messenger->unreachable.insert(remote.peer);
    world.messenger->close(local.peer);
  }

  World& world;
  Asker local;
  Asker remote;
  Code error = Code::kOk;
  std::string credential;
};

TEST_CASE("programs that come and go over ipc leave nothing behind, whether they say Bye or are killed") {
  World world;
  for (const bool orderly : {true, false}) {
    for (int i = 0; i < 20'000; ++i) {
      IpcProgram program(world, 500);  // the owner, who has no limit of his own
      REQUIRE(program.error == Code::kOk);
      orderly ? program.say_bye() : program.die();
      if (i % 1000 == 999) world.advance(1);
    }
    world.advance(1);
    CHECK(sessions_of(world) <= 1);
  }
}

TEST_CASE("idle sessions of one user give way to his own, then to others', and come back by their credentials") {
  World world;
  std::vector<IpcProgram> stay;
  for (std::size_t i = 0; i < kSessionsOfOne + 100; ++i) {
    IpcProgram& one = stay.emplace_back(world, 1001);
    REQUIRE(one.error == Code::kOk);
    world.messenger->close(one.local.peer);  // as if the connection had broken; the program is there
    world.run();
  }
  CHECK(sessions_of(world) <= kSessionsOfOne);
  CHECK(stay.front().remote.list(stay.front().credential) == Code::kOk);
  for (std::size_t i = 0; i < 13'000; ++i) {
    const IpcProgram one(world, 500);
    REQUIRE(one.error == Code::kOk);
    world.messenger->close(one.local.peer);
    world.run();
  }
  CHECK(IpcProgram(world, 1002).error == Code::kOk);
}

TEST_CASE("a session with a file that is being created does not give way") {
  World world;
  IpcProgram busy(world, 500);
  const Envelope made = busy.remote.ask(Client::create_request("/a"), busy.credential);
  REQUIRE(code_of(made) == Code::kOk);
  world.messenger->close(busy.local.peer);
  world.run();
  for (std::size_t i = 0; i < 4 * kSessionsOfOne + 100; ++i) {
    const IpcProgram one(world, 500);
    REQUIRE(one.error == Code::kOk);
    world.messenger->close(one.local.peer);
    world.run();
  }
  world.advance(31);  // were it forgotten, its file would be too
  CHECK(code_of(busy.remote.ask(Client::commit_request(made.create_reply().file()), busy.credential)) == Code::kOk);
}

TEST_CASE("what was done by a program that left is not done again when it comes back, however much it was") {
  for (const int count : {1, 3, 12}) {
    World world;
    Client client(world), other(world);
    const auto name = [](int i) { return "/d" + std::to_string(i); };
    for (int i = 0; i < count; ++i) {  // a turn each
      REQUIRE(client.ask(Client::folder_request(name(i)), 101 + i));
      REQUIRE(other.remove(name(i)) == Code::kOk);
    }
    client.close();
    world.live(5);
    client.connect();
    for (int i = 0; i < count; ++i) {
      CHECK(client.ask(Client::folder_request(name(i)), 101 + i));
      CHECK_FALSE(other.exists(name(i)));
    }
  }
}

TEST_CASE("a program that left after a request that failed with its turn is answered again when it comes back") {
  World world;
  Client client(world), other(world);
  REQUIRE(client.ask(Client::folder_request("/a"), 101));
  REQUIRE(other.remove("/a") == Code::kOk);
  world.store->commits_to_fail = 1;
  CHECK(code_of(client.ask(Client::folder_request("/b"), 102)) == Code::kIo);
  client.close();
  world.live(2);
  client.connect();
  CHECK(client.ask(Client::folder_request("/a"), 101));
  CHECK_FALSE(other.exists("/a"));
  CHECK(client.ask(Client::folder_request("/b"), 102));
  CHECK(other.exists("/b"));
}

}  // namespace pif::server::testing
