// Create, commit, abort, remove, with crashes at every step; holds and leases; repeated requests; failing stores.
#include "pif/wire/file_states.h"
#include "server/fixture.h"

#include <algorithm>
#include <set>

namespace pif::server::testing {
namespace {

// Ids that node 1 was told were removed, or given up before they were committed.
std::vector<std::uint64_t> removed_at(const std::map<std::uint32_t, std::vector<proto::Settle>>& told,
                                      std::uint32_t node = 1) {
  std::vector<std::uint64_t> ids;
  if (const auto found = told.find(node); found != told.end()) {
    for (const auto& settle : found->second) {
      ids.insert(ids.end(), settle.removed().begin(), settle.removed().end());
      ids.insert(ids.end(), settle.aborted().begin(), settle.aborted().end());
    }
  }
  return ids;
}
const std::vector<std::uint32_t> kAll = {1, 2, 3, 4};

std::vector<std::uint32_t> states(World& world, const std::vector<std::uint64_t>& files) {
  Envelope request;
  request.set_version(kProtocolVersion);
  request.set_id(77);
  request.set_capability(world.manage());
  for (const auto file : files) request.mutable_file_states()->add_files(file);
  world.messenger->forget_replies();
  world.messenger->deliver(world.lfs_peer(1), request);
  world.run();
  const auto reply = world.reply(world.lfs_peer(1), 77);
  REQUIRE(reply);
  REQUIRE_FALSE(reply->has_error());
  const auto& s = reply->file_states_reply().states();
  return {s.begin(), s.end()};
}
constexpr std::uint32_t kKeep = 1, kIsCommitted = 2, kRemoved = 3, kNotKnown = 4;

TEST_CASE("nobody sees a file before its commit, everybody after") {
  World world;
  Client client(world), other(world, 1001);
  const auto made = client.create("/f");
  REQUIRE(made);
  CHECK(made->nodes_size() == 4);
  CHECK(made->nodes(2).name() == "lfs2");
  const auto capability = verify_capability(world.key, made->capability(), world.clock.wall_seconds());
  REQUIRE(capability);
  CHECK(capability->file.value == made->file());
  CHECK(capability->rights == (kMayCreate | kMayRead));
  CHECK(capability->uid == 500);
  CHECK_FALSE(client.exists("/f"));
  CHECK(client.list("/")->entries.size() == 0);
  CHECK(states(world, {made->file()}) == std::vector<std::uint32_t>{kKeep});
  auto impossible = Client::commit_request(made->file(), 7);
  impossible.mutable_commit()->mutable_file_length()->set_bytes(701);
  CHECK(client.ask(impossible).error().text == "7 records of 100 bytes cannot have 701 bytes");
  REQUIRE(client.ask(Client::commit_request(made->file(), 7)));
  CHECK(other.stat("/f")->file_length().records() == 7);
  CHECK(states(world, {made->file(), 99999}) == std::vector<std::uint32_t>{kIsCommitted, kNotKnown});
  REQUIRE(client.ask(Client::commit_request(made->file(), 7)));
  require_sound(world);
}

TEST_CASE("a commit replaces the file of that name at once, or is refused if it was to be exclusive") {
  World world;
  Client client(world);
  const auto old = client.put("/f", 1);
  auto request = Client::create_request("/f");
  request.mutable_create()->set_exclusive(true);
  CHECK(client.ask(request).error().code == Code::kExists);
  const auto made = client.create("/f");
  REQUIRE(made);
  CHECK(client.stat("/f")->id() == old);
  REQUIRE(client.ask(Client::commit_request(made->file(), 2)));
  CHECK(client.stat("/f")->id() == made->file());
  const auto told = removed_at(world.settles(kAll));
  CHECK(std::find(told.begin(), told.end(), old) != told.end());

  request = Client::create_request("/g");
  request.mutable_create()->set_exclusive(true);
  const auto late = client.ask(request);
  REQUIRE(late);
  client.put("/g", 1);
  CHECK(client.ask(Client::commit_request(late->create_reply().file())).error().code == Code::kExists);
}

TEST_CASE("a commit into a folder that was removed meanwhile fails, and after an abort too") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  const auto made = client.create("/d/f");
  REQUIRE(made);
  REQUIRE(client.remove("/d") == Code::kOk);
  CHECK(client.ask(Client::commit_request(made->file())).error().code == Code::kNotFound);
  Envelope abort;
  abort.mutable_abort()->set_file(made->file());
  REQUIRE(client.ask(abort));
  REQUIRE(client.ask(abort));
  CHECK(client.ask(Client::commit_request(made->file())).error().code == Code::kStaleFile);
  CHECK(removed_at(world.settles(kAll)) == std::vector<std::uint64_t>{made->file()});
  CHECK(states(world, {made->file()}) == std::vector<std::uint32_t>{wire::kFileGivenUp});
  require_sound(world);
}

TEST_CASE("a commit of somebody else's file is refused") {
  World world;
  Client owner(world), anna(world, 1001), bert(world, 1002);
  REQUIRE(owner.mkdir("/open", false, 0777));
  const auto made = anna.create("/open/f");
  REQUIRE(made);
  CHECK(bert.ask(Client::commit_request(made->file())).error().code == Code::kPermission);
  Envelope abort;
  abort.mutable_abort()->set_file(made->file());
  CHECK(bert.ask(abort).error().code == Code::kPermission);
  CHECK(anna.ask(Client::commit_request(made->file())));
}

TEST_CASE("a file that never had a component is forgotten at once, one that may have had is told to every LFS") {
  World world;
  Client client(world);
  const auto bare = client.create("/bare", true);
  const auto opened = client.create("/opened", true);
  REQUIRE(opened);
  REQUIRE(client.open("/opened", kMayWrite));
  client.close_file(opened->file());
  world.settles(kAll);
  REQUIRE(client.remove("/bare") == Code::kOk);
  REQUIRE(client.remove("/opened") == Code::kOk);
  CHECK(client.nodes().doomed() == 1);
  CHECK(removed_at(world.settles(kAll)) == std::vector<std::uint64_t>{opened->file()});
  CHECK(client.nodes().doomed() == 0);
}

TEST_CASE("a removed file is remembered until every LFS has been told, over restarts and while one is down") {
  World world;
  Client client(world);
  const auto file = client.put("/f");
  world.settles(kAll);
  REQUIRE(client.remove("/f") == Code::kOk);
  world.settles({1, 2, 4});
  CHECK(client.nodes().doomed() == 1);
  world.start();
  world.heartbeats();
  CHECK(removed_at(world.settles({1, 2, 3}), 3) == std::vector<std::uint64_t>{file});
  world.start();
  world.heartbeats();
  CHECK(removed_at(world.settles(kAll), 4) == std::vector<std::uint64_t>{file});
  CHECK(Client(world).nodes().doomed() == 0);
  CHECK(states(world, {file}) == std::vector<std::uint32_t>{kNotKnown});
  world.start();
  world.heartbeats();
  CHECK(removed_at(world.settles(kAll)).empty());
  require_sound(world);
}

TEST_CASE("an LFS that does not answer is told again") {
  World world;
  Client client(world);
  const auto file = client.put("/f");
  world.settles(kAll);
  REQUIRE(client.remove("/f") == Code::kOk);
  CHECK(removed_at(world.settles({2, 3, 4})) == std::vector<std::uint64_t>{file});
  world.live(10);
  CHECK(removed_at(world.settles(kAll)) == std::vector<std::uint64_t>{file});
  CHECK(client.nodes().doomed() == 0);
}

TEST_CASE("a removed file stays for those who have it open, until they close it or go") {
  World world;
  Client client(world), reader(world, 1001), second(world, 1002);
  const auto file = client.put("/f");
  world.settles(kAll);
  REQUIRE(reader.open("/f"));
  REQUIRE(second.open("/f"));
  REQUIRE(client.remove("/f") == Code::kOk);
  CHECK(removed_at(world.settles(kAll)).empty());
  CHECK(client.reopen(file).error().code == Code::kStaleFile);
  CHECK(reader.reopen(file));
  CHECK_FALSE(reader.renew(file).empty());
  reader.close_file(file);
  CHECK(reader.renew(file).empty());
  CHECK(removed_at(world.settles(kAll)).empty());
  second.close();
  CHECK(removed_at(world.settles(kAll)) == std::vector<std::uint64_t>{file});
}

TEST_CASE("a removed file that is open when the server dies waits for the end of the lease") {
  World world;
  Client client(world), reader(world, 1001);
  const auto file = client.put("/f");
  world.settles(kAll);
  REQUIRE(reader.open("/f"));
  REQUIRE(client.remove("/f") == Code::kOk);
  world.start();
  world.heartbeats();
  CHECK(removed_at(world.settles(kAll)).empty());
  world.live(600);
  CHECK(removed_at(world.settles(kAll)).empty());
  world.live(31);
  CHECK(removed_at(world.settles(kAll)) == std::vector<std::uint64_t>{file});
}

TEST_CASE("an open that is not renewed ends with its capability, one that is renewed does not") {
  World world;
  Client client(world), lazy(world, 1001), busy(world, 1002);
  const auto file = client.put("/f");
  REQUIRE(lazy.open("/f", kMayRead, true));
  REQUIRE(busy.open("/f", kMayRead, true));
  world.live(400);
  CHECK_FALSE(busy.renew(file).empty());
  world.live(300);
  const auto refused = client.open("/f", kMayWrite);
  CHECK_THAT(refused.error().text, Catch::Contains("prog1002"));
  busy.close_file(file);
  CHECK(client.open("/f", kMayWrite));
}

TEST_CASE("what a program was creating is aborted half a minute after it went, unless it comes back") {
  World world;
  Client gone(world), back(world);
  const auto lost = gone.create("/lost");
  const auto kept = back.create("/kept");
  world.settles(kAll);
  gone.close();
  back.close();
  world.live(20);
  back.connect();
  world.live(15);
  CHECK(states(world, {lost->file(), kept->file()}) == std::vector<std::uint32_t>{wire::kFileGivenUp, kKeep});
  REQUIRE(back.ask(Client::commit_request(kept->file())));
  CHECK(back.exists("/kept"));
  CHECK(back.nodes().pending() == 0);
  require_sound(world);
}

TEST_CASE("after a restart creators have half a minute to come back") {
  World world;
  Client gone(world), back(world);
  const auto lost = gone.create("/lost");
  const auto kept = back.create("/kept");
  world.start();
  world.heartbeats();
  back.connect();
  world.live(29);
  CHECK(states(world, {lost->file()}) == std::vector<std::uint32_t>{kKeep});
  world.live(2);
  CHECK(states(world, {lost->file(), kept->file()}) == std::vector<std::uint32_t>{kNotKnown, kKeep});
  CHECK(removed_at(world.settles(kAll)) == std::vector<std::uint64_t>{lost->file()});
  REQUIRE(back.ask(Client::commit_request(kept->file())));
  CHECK(back.exists("/kept"));
}

TEST_CASE("a session over ZeroMQ ends a minute after its last request") {
  World world;
  Client client(world, 1001, {}, net::Identity::Via::kCurve), owner(world);
  const auto file = owner.put("/f");
  REQUIRE(client.open("/f", kMayRead, true));
  world.live(50);
  CHECK(client.exists("/f"));
  world.live(50);
  CHECK(owner.open("/f", kMayWrite).error().code == Code::kBusy);
  world.live(15);
  CHECK(owner.open("/f", kMayWrite));
  CHECK(client.exists("/f"));  // its credential still names it
  CHECK(file != 0);
}

TEST_CASE("a connection without identity needs a credential, and gets no session by itself") {
  World world;
  Client owner(world);
  const auto peer = world.messenger->add({.via = net::Identity::Via::kIpc});
  const auto ask = [&](Envelope request, std::uint64_t id) {
    request.set_version(kProtocolVersion);
    request.set_id(id);
    world.messenger->deliver(peer, request);
    world.run();
    return *world.reply(peer, id);
  };
  Envelope hello, stat;
  hello.mutable_hello()->set_program("x");
  stat.mutable_stat()->add_paths("/");
  CHECK(ask(hello, 1).error().code() == static_cast<std::uint32_t>(Code::kPermission));
  CHECK(ask(stat, 2).error().code() == static_cast<std::uint32_t>(Code::kBadCapability));
  stat.set_credential("forged");
  CHECK(ask(stat, 3).error().code() == static_cast<std::uint32_t>(Code::kBadCapability));
  stat.set_credential(owner.credential());
  CHECK(ask(stat, 4).has_stat_reply());
}

TEST_CASE("another user's credential is refused on a connection that the kernel vouches for") {
  World world;
  Client owner(world), anna(world, 1001);
  Envelope stat;
  stat.set_version(kProtocolVersion);
  stat.set_id(900);
  stat.mutable_stat()->add_paths("/");
  stat.set_credential(owner.credential());
  world.messenger->deliver(anna.peer(), stat);
  world.run();
  CHECK(anna.answer(900).error().code == Code::kPermission);
}

TEST_CASE("writers and holds keep each other out, and the error names who is there") {
  World world;
  Client owner(world), tool(world, 1001), writer(world, 500);
  owner.put("/f");
  REQUIRE(tool.open("/f", kMayRead, true));
  const auto refused = writer.open("/f", kMayRead | kMayWrite);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBusy);
  CHECK_THAT(refused.error().text, Catch::Contains("prog1001"));
  CHECK(writer.open("/f", kMayRead));
  tool.close();
  REQUIRE(writer.open("/f", kMayWrite));
  Client again(world, 1001);
  CHECK(again.open("/f", kMayRead, true).error().code == Code::kBusy);
  CHECK(again.open("/f", kMayRead));
}

TEST_CASE("a writer's length shows in stat after its close, and never shrinks it") {
  World world;
  Client writer(world), reader(world, 1001);
  const auto file = writer.put("/f", 10);
  const auto close = [&](Client& client, std::uint64_t records) {
    Envelope request;
    request.mutable_close()->add_files(file);
    request.mutable_close()->set_length_file(file);
    request.mutable_close()->mutable_file_length()->set_records(records);
    request.mutable_close()->mutable_file_length()->set_bytes(records * 100);
    REQUIRE(client.ask(request));
  };
  REQUIRE(reader.open("/f"));
  close(reader, 99);
  CHECK(writer.stat("/f")->file_length().records() == 10);
  REQUIRE(writer.open("/f", kMayWrite));
  close(writer, 12);
  CHECK(writer.stat("/f")->file_length().records() == 12);
  REQUIRE(writer.open("/f", kMayWrite));
  close(writer, 5);
  CHECK(writer.stat("/f")->file_length().records() == 12);
}

TEST_CASE("ids are never used twice, whatever crashes") {
  World world;
  std::set<std::uint64_t> given;
  for (int round = 0; round < 5; ++round) {
    Client client(world);
    for (int i = 0; i < 3; ++i) {
      const auto made = client.create("/f", true);
      REQUIRE(made);
      CHECK(given.insert(made->file()).second);
    }
    world.start();
    world.heartbeats();
  }
}

TEST_CASE("a repeated request gets its first answer, and is not done again") {
  World world;
  Client client(world);
  const auto first = client.ask(Client::create_request("/f", true), 50);
  REQUIRE(first);
  const auto second = client.ask(Client::create_request("/f", true), 50);
  REQUIRE(second);
  CHECK(first->SerializeAsString() == second->SerializeAsString());
  REQUIRE(client.ask(Client::rename_request("/f", "/g"), 51));
  REQUIRE(client.create("/f", true));
  REQUIRE(client.ask(Client::rename_request("/f", "/g"), 51));
  CHECK(client.exists("/f"));
}

TEST_CASE(
    "requests sent again after a crash of the server get their first answers, all that were committed together too") {
  World world;
  Client client(world);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 30; ++i) {
    auto request = Client::create_request("/f" + std::to_string(i), true);
    request.mutable_create()->set_exclusive(true);
    ids.push_back(client.post(request));
  }
  world.run();
  std::vector<std::string> answers;
  for (const auto id : ids) answers.push_back(client.answer(id)->SerializeAsString());
  world.start();
  world.heartbeats();
  client.connect();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto request = Client::create_request("/f" + std::to_string(i), true);
    request.mutable_create()->set_exclusive(true);
    const auto again = client.ask(request, ids[i]);
    REQUIRE(again);
    CHECK(again->SerializeAsString() == answers[i]);
  }
  CHECK(client.list("/")->entries.size() == 30);
}

TEST_CASE(
    "as many requests as a client has under way are recognised when they are sent again, whatever came after them") {
  World world;
  Client client(world);
  constexpr int kUnderWay = 256;
  for (int i = 0; i < kUnderWay; ++i) REQUIRE(client.create("/f" + std::to_string(i), true));
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < kUnderWay; ++i) {
    ids.push_back(client.post(Client::rename_request("/f" + std::to_string(i), "/g" + std::to_string(i))));
    if (i % 16 == 15) world.run();  // several turns
  }
  world.run();
  for (const auto id : ids) REQUIRE(client.answer(id));
  REQUIRE(client.create("/f0", true));  // somebody else's
  for (int i = 0; i < kUnderWay; ++i) {
    const auto request = Client::rename_request("/f" + std::to_string(i), "/g" + std::to_string(i));
    REQUIRE(client.ask(request, ids[static_cast<std::size_t>(i)]));
  }
  CHECK(client.exists("/f0"));
}

TEST_CASE("a recursive remove that is asked for again is not done again, and answered over both connections") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/t"));
  for (int i = 0; i < 2500; ++i) client.post(Client::create_request("/t/f" + std::to_string(i), true));
  world.run();
  world.messenger->forget_replies();
  client.post(Client::remove_request({"/t"}, true), 9000);
  const auto first = client.peer();
  const auto second =
      world.messenger->add({.via = net::Identity::Via::kUnix, .has_uid = true, .uid = 500, .gids = {500}});
  Envelope again = Client::remove_request({"/t"}, true);  // in the same turn: it is still under way
  again.set_version(kProtocolVersion);
  again.set_id(9000);
  again.set_credential(client.credential());
  world.messenger->deliver(second, again);
  world.run();
  const auto before = world.reply(first, 9000);
  REQUIRE(before);
  CHECK(before->remove_reply().removed() == 2501);
  const auto answered = world.reply(second, 9000);
  REQUIRE(answered);
  CHECK(answered->remove_reply().removed() == 2501);
  const auto after = client.ask(Client::remove_request({"/t"}, true), 9000);
  REQUIRE(after);
  CHECK(after->remove_reply().removed() == 2501);
}

TEST_CASE("a failed commit fails every change of the turn and leaves everything as it was") {
  World world;
  Client client(world), other(world, 1001);
  const auto old = client.put("/old", 3);
  const auto pending = client.create("/pending");
  REQUIRE(client.mkdir("/d"));
  world.settles(kAll);
  const auto before = client.nodes();
  world.store->commits_to_fail = 1;
  world.messenger->forget_replies();
  const std::vector<std::uint64_t> ids = {
      client.post(Client::create_request("/new", true)),    client.post(Client::create_request("/new2")),
      client.post(Client::commit_request(pending->file())), client.post(Client::remove_request({"/old", "/d"})),
      client.post(Client::folder_request("/e/f", true)),    client.post(Client::rename_request("/d", "/x"))};
  world.run();
  for (const auto id : ids) CHECK(client.answer(id).error().code == Code::kIo);
  CHECK(client.stat("/old")->id() == old);
  for (const char* path : {"/new", "/new2", "/pending", "/e", "/e/f", "/x"}) CHECK_FALSE(client.exists(path));
  CHECK(client.exists("/d"));
  const auto after = client.nodes();
  CHECK(after.files() == before.files());
  CHECK(after.folders() == before.folders());
  CHECK(after.pending() == before.pending());
  CHECK(after.doomed() == 0);
  CHECK(world.settles(kAll).empty());
  require_sound(world);
  // And the same requests work afterwards.
  REQUIRE(client.ask(Client::create_request("/new", true), ids[0]));
  REQUIRE(client.ask(Client::commit_request(pending->file()), ids[2]));
  CHECK(client.exists("/new"));
  CHECK(client.exists("/pending"));
  require_sound(world);
}

TEST_CASE("a recursive remove in a turn that another request has broken fails with it, and works afterwards") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/t/a", true));
  world.store->puts_until_failure = 0;
  world.messenger->forget_replies();
  const std::vector<std::uint64_t> ids = {client.post(Client::create_request("/new", true)),
                                          client.post(Client::remove_request({"/t"}, true))};
  world.run();
  for (const auto id : ids) CHECK(client.answer(id).error().code == Code::kNoSpace);
  CHECK(client.exists("/t/a"));
  require_sound(world);
  REQUIRE(client.ask(Client::remove_request({"/t"}, true), ids[1]));
  CHECK_FALSE(client.exists("/t"));
  require_sound(world);
}

TEST_CASE("a store that fails anywhere within a turn leaves all or nothing of each request") {
  for (unsigned at = 0; at < 24; ++at) {
    World world;
    Client client(world);
    client.put("/old", 3);
    world.settles(kAll);
    world.store->puts_until_failure = at;
    const auto made = client.ask(Client::create_request("/a", true));
    const auto pending = client.create("/old");
    const auto committed =
        pending ? client.ask(Client::commit_request(pending->file(), 4)) : Result<Envelope>(Envelope());
    const auto renamed = client.rename("/old", "/b");
    world.store->puts_until_failure.reset();
    CHECK(client.exists("/a") == made.has_value());
    CHECK(client.exists("/b") == renamed.has_value());
    CHECK(client.exists("/old") == !renamed.has_value());
    const auto entry = client.stat(renamed ? "/b" : "/old");
    REQUIRE(entry);
    CHECK(entry->file_length().records() == (pending && committed ? 4 : 3));
    require_sound(world);
    world.start();
    require_sound(world);
  }
}

TEST_CASE("a crash between any two steps of a file's life leaves a sound directory") {
  for (int crash = 0; crash < 6; ++crash) {
    World world;
    auto client = std::make_unique<Client>(world);
    const auto step = [&](int number) {
      if (number != crash) return;
      world.start();
      world.heartbeats();
      client->connect();
      require_sound(world);
    };
    client->put("/f", 1);
    step(0);
    const auto made = client->create("/f");
    REQUIRE(made);
    step(1);
    REQUIRE(client->ask(Client::commit_request(made->file(), 2)));
    step(2);
    CHECK(client->stat("/f")->file_length().records() == 2);
    REQUIRE(client->rename("/f", "/g"));
    step(3);
    REQUIRE(client->remove("/g") == Code::kOk);
    step(4);
    world.settles({1, 2});
    step(5);
    world.live(10);  // those that have not answered are told again
    world.settles(kAll);
    CHECK(client->nodes().doomed() == 0);
    CHECK(client->nodes().files() == 0);
    CHECK(client->nodes().folders() == 1);
    require_sound(world);
  }
}

}  // namespace
}  // namespace pif::server::testing
