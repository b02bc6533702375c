// Parallel-open: who may make a group and join it, what its members and its controller hear, and when.
#include "../../server/src/context/parallel_groups.h"
#include "../../server/src/context/tokens.h"
#include "pif/base/timers.h"
#include "server/sharing.h"

namespace pif::server::testing {
namespace {

Envelope open_request(std::uint64_t file, std::uint32_t members, bool writes = false, std::uint64_t position = 0) {
  Envelope request;
  proto::ParallelOpen& open = *request.mutable_parallel_open();
  open.set_file(file);
  open.set_members(members);
  open.set_writes(writes);
  open.set_position(position);
  return request;
}
Envelope seat_request(const std::string& token, std::optional<std::uint32_t> member = {}) {
  Envelope request;
  request.mutable_parallel_join()->set_token(token);
  if (member) request.mutable_parallel_join()->set_member(*member);
  return request;
}
Envelope release_request(std::uint64_t group, std::uint64_t released, std::uint64_t wait_for) {
  Envelope request;
  request.mutable_release()->set_group(group);
  request.mutable_release()->set_released(released);
  request.mutable_release()->set_wait_for(wait_for);
  return request;
}
Envelope await_request(std::uint64_t group, std::uint32_t member, std::uint64_t done) {
  Envelope request;
  request.mutable_await_rounds()->set_group(group);
  request.mutable_await_rounds()->set_member(member);
  request.mutable_await_rounds()->set_done(done);
  return request;
}
Envelope close_request(std::uint64_t group) {
  Envelope request;
  request.mutable_parallel_close()->set_group(group);
  return request;
}

// What was said so far to a request that was posted.
std::string heard(Client& client, std::uint64_t id) {
  const auto reply = client.answer(id);
  if (!reply) {
    if (reply.error().code == Code::kTimeout) return "nothing";
    return fmt::format("{}: {}", code_name(reply.error().code), reply.error().text);
  }
  if (reply->has_release_reply()) return fmt::format("done {}", reply->release_reply().done());
  const auto& rounds = reply->await_rounds_reply();
  return fmt::format("released {}{}", rounds.released(), rounds.ended() ? ", ended" : "");
}

// A controller that has a file of 100 records open, and members of a group of it.
struct Scene {
  explicit Scene(int members) {
    const auto reply = controller.ask(open_request(file, static_cast<std::uint32_t>(members), false, 40));
    REQUIRE(reply);
    group = reply->parallel_open_reply().group();
    token = reply->parallel_open_reply().token();
    for (int i = 0; i < members; ++i) {
      member.push_back(std::make_unique<Client>(world));
      REQUIRE(member.back()->ask(seat_request(token)));
    }
  }
  std::uint64_t post(Client& client, const Envelope& request) {
    const std::uint64_t id = client.post(request);
    world.run();
    return id;
  }
  std::uint64_t release(std::uint64_t released, std::uint64_t wait_for) {
    return post(controller, release_request(group, released, wait_for));
  }
  std::uint64_t await(std::uint32_t number, std::uint64_t done) {
    return post(*member[number], await_request(group, number, done));
  }
  World world;
  Client controller{world};
  std::uint64_t file = controller.put("/f", 100);
  bool opened = controller.open("/f").has_value();
  std::uint64_t group = 0;
  std::string token;
  std::vector<std::unique_ptr<Client>> member;
};

}  // namespace

TEST_CASE("a member learns its number, and which records are whose") {
  Scene scene(2);
  Client third(scene.world);
  const auto made = scene.controller.ask(open_request(scene.file, 3, false, 40));
  REQUIRE(made);
  const auto joined = third.ask(seat_request(made->parallel_open_reply().token(), 2));
  REQUIRE(joined);
  const auto& seat = joined->parallel_join_reply();
  CHECK(seat.group() == made->parallel_open_reply().group());
  CHECK(seat.group() != scene.group);
  CHECK(seat.member() == 2);
  CHECK(seat.members() == 3);
  CHECK(seat.position() == 40);
  CHECK(seat.file() == scene.file);
  CHECK_FALSE(seat.writes());
}

TEST_CASE("members move the rounds that are released, and the controller hears when all have moved them") {
  Scene scene(2);
  const auto first = scene.await(0, 0);
  CHECK(heard(*scene.member[0], first) == "nothing");
  const auto released = scene.release(2, 2);
  CHECK(heard(*scene.member[0], first) == "released 2");
  CHECK(heard(*scene.member[1], scene.await(1, 0)) == "released 2");
  scene.await(0, 2);
  CHECK(heard(scene.controller, released) == "nothing");
  const auto last = scene.await(1, 2);
  CHECK(heard(scene.controller, released) == "done 2");
  REQUIRE(scene.controller.ask(close_request(scene.group)));
  CHECK(heard(*scene.member[1], last) == "released 2, ended");
  require_sound(scene.world);
}

TEST_CASE("who waits in vain is answered after a second, and asks again") {
  Scene scene(2);
  const auto released = scene.release(2, 1);
  const auto awaited = scene.await(0, 2);
  scene.world.clock.advance(kJobHoldMax - std::chrono::milliseconds(1));
  scene.world.run();
  CHECK(heard(scene.controller, released) == "nothing");
  CHECK(heard(*scene.member[0], awaited) == "nothing");
  scene.world.clock.advance(std::chrono::milliseconds(1));
  scene.world.run();
  CHECK(heard(scene.controller, released) == "done 0");
  CHECK(heard(*scene.member[0], awaited) == "released 2");
}

TEST_CASE("nothing is written for a group: a thousand rounds cost no commit") {
  Scene scene(2);
  const unsigned commits = scene.world.store->commits;
  for (std::uint64_t round = 1; round <= 1000; ++round) {
    scene.release(round, round - 1);
    scene.await(0, round);
    scene.await(1, round);
    scene.world.messenger->forget_replies();
  }
  CHECK(heard(scene.controller, scene.release(1000, 1000)) == "done 1000");
  CHECK(scene.world.store->commits == commits);
}

TEST_CASE("a group is of a file that is open here, for what it was opened for") {
  World world;
  Client client(world), other(world);
  const auto file = client.put("/f");
  CHECK(code_of(client.ask(open_request(file, 2))) == Code::kStaleFile);
  REQUIRE(other.open("/f"));
  CHECK(code_of(client.ask(open_request(file, 2))) == Code::kStaleFile);
  CHECK(code_of(other.ask(open_request(file, 2))) == Code::kOk);
  CHECK(code_of(other.ask(open_request(file, 2, true))) == Code::kPermission);
  REQUIRE(client.open("/f", kMayWrite));
  CHECK(code_of(client.ask(open_request(file, 2, true))) == Code::kOk);
  CHECK(code_of(client.ask(open_request(file, 2))) == Code::kPermission);
  CHECK(code_of(client.ask(open_request(file, 0, true))) == Code::kInvalid);
  CHECK(code_of(client.ask(open_request(file, kGroupMembersMax + 1, true))) == Code::kTooLarge);
  CHECK(code_of(client.ask(open_request(file, kGroupMembersMax, true))) == Code::kOk);
}

TEST_CASE("a group is of a file that is being created, if it is shared and by a member") {
  SharedScene scene;
  Client stranger(scene.world);
  const auto alone = scene.first.create("/alone")->file();
  CHECK(code_of(scene.first.ask(open_request(alone, 2, true))) == Code::kPermission);
  CHECK(code_of(stranger.ask(open_request(scene.file, 2, true))) == Code::kPermission);
  CHECK(code_of(scene.first.ask(open_request(scene.file, 2, true))) == Code::kOk);
  CHECK(code_of(scene.second.ask(open_request(scene.file, 2, true))) == Code::kOk);
  REQUIRE(scene.first.ask(drop_request(scene.file, 1)));
  CHECK(code_of(scene.second.ask(open_request(scene.file, 2, true))) == Code::kPermission);
}

TEST_CASE("a group's token is good for its user and for a day, and a file's token is none") {
  Scene scene(1);
  World& world = scene.world;
  Client root(world, 0), other(world);
  const auto made = scene.controller.ask(open_request(scene.file, 9));
  const std::string token = made->parallel_open_reply().token();
  CHECK(code_of(root.ask(seat_request(token))) == Code::kPermission);
  std::string forged = token;
  forged.back() = static_cast<char>(forged.back() ^ 1);
  CHECK(code_of(other.ask(seat_request(forged))) == Code::kBadCapability);
  const auto group = made->parallel_open_reply().group();
  const auto until = world.clock.wall_seconds() + 100;
  CHECK(code_of(other.ask(seat_request(mint_token(world.key, kJoinTag, {group, 500, until})))) == Code::kBadCapability);
  CHECK(code_of(other.ask(seat_request(mint_token(world.key, kGroupTag, {group + 1, 500, until})))) == Code::kNotFound);
  CHECK(code_of(other.ask(seat_request(token))) == Code::kOk);
  world.clock.advance(std::chrono::hours(24));
  world.heartbeats();
  CHECK(code_of(other.ask(seat_request(token))) == Code::kOk);
  world.clock.advance(std::chrono::seconds(1));
  const auto expired = other.ask(seat_request(token));
  CHECK(expired.error().code == Code::kBadCapability);
  CHECK_THAT(expired.error().text, Catch::Contains("expired 1 s ago"));
}

TEST_CASE("a group that is opened, or joined, by a request that is sent again is one, and one member") {
  Scene scene(1);
  Client other(scene.world);
  const auto made = scene.controller.ask(open_request(scene.file, 3), 900);
  const auto again = scene.controller.ask(open_request(scene.file, 3), 900);
  REQUIRE(again);
  CHECK(again->SerializeAsString() == made->SerializeAsString());
  const std::string token = made->parallel_open_reply().token();
  CHECK(other.ask(seat_request(token), 40)->parallel_join_reply().member() == 0);
  CHECK(other.ask(seat_request(token), 40)->parallel_join_reply().member() == 0);
  CHECK(code_of(other.ask(seat_request(token, 0), 41)) == Code::kExists);
  CHECK(other.ask(seat_request(token), 42)->parallel_join_reply().member() == 1);
}

TEST_CASE("a request that is sent again over a new connection is answered there") {
  Scene scene(1);
  const auto awaited = scene.await(0, 0);
  scene.member[0]->connect();  // the old connection is there still
  scene.member[0]->post(await_request(scene.group, 0, 0), awaited);
  scene.world.run();
  CHECK(heard(*scene.member[0], awaited) == "nothing");
  scene.release(1, 0);
  CHECK(heard(*scene.member[0], awaited) == "released 1");
}

TEST_CASE("a member that goes is named to the controller at once, and the others stop") {
  Scene scene(3);
  const auto released = scene.release(4, 1);
  const auto awaited = scene.await(0, 4);
  scene.member[2]->close();
  CHECK(heard(scene.controller, released) == "unavailable: member 2 (prog500) of the group is gone");
  CHECK(heard(*scene.member[0], awaited) == "cancelled: member 2 (prog500) of the group is gone");
  CHECK(heard(*scene.member[1], scene.await(1, 0)) == "cancelled: member 2 (prog500) of the group is gone");
  CHECK(heard(scene.controller, scene.release(4, 0)).starts_with("unavailable"));
  scene.member[2]->connect();  // it comes back, and is gone for good all the same
  CHECK(heard(*scene.member[2], scene.await(2, 0)).starts_with("cancelled"));
  REQUIRE(scene.controller.ask(close_request(scene.group)));
  CHECK(heard(scene.controller, scene.release(4, 0)).starts_with("not-found"));
}

TEST_CASE("a controller that goes cancels the group, though nobody says anything") {
  Scene scene(2);
  const auto awaited = scene.await(0, 0);
  scene.controller.close();
  CHECK(heard(*scene.member[0], awaited) == "cancelled: the controller of the group (prog500) is gone");
  CHECK(heard(*scene.member[1], scene.await(1, 0)).starts_with("cancelled"));
  CHECK(heard(*scene.member[1], scene.await(1, 0)).starts_with("not-found"));
}

TEST_CASE("over ZeroMQ a member that is silent for a minute is gone, and who waits hears it in the same second") {
  Scene scene(1);
  Client silent(scene.world, 500, {}, net::Identity::Via::kCurve);
  const auto made = scene.controller.ask(open_request(scene.file, 1));
  REQUIRE(silent.ask(seat_request(made->parallel_open_reply().token())));
  const auto group = made->parallel_open_reply().group();
  scene.world.live(59);
  auto released = scene.post(scene.controller, release_request(group, 1, 1));
  CHECK(heard(scene.controller, released) == "nothing");
  scene.world.live(1);
  CHECK(heard(scene.controller, released) == "unavailable: member 0 (prog500) of the group is gone");
}

TEST_CASE("who is in a group does not give way to others of his user who have a session") {
  World world;
  Client owner(world), controller(world, 1001);
  owner.put("/f");
  REQUIRE(owner.mkdir("/d", false, 0777));
  REQUIRE(controller.open("/f"));
  const auto made = controller.ask(open_request(controller.stat("/f")->id(), 1));
  REQUIRE(made);
  Client silent(world, 1001, {}, net::Identity::Via::kCurve);
  REQUIRE(silent.ask(seat_request(made->parallel_open_reply().token())));
  REQUIRE(silent.mkdir("/d/x"));  // all its answers are stored: nothing else keeps its session
  world.clock.advance(std::chrono::seconds(1));
  std::vector<std::unique_ptr<Client>> many;
  for (int i = 0; i < 4094; ++i) many.push_back(std::make_unique<Client>(world, 1001));
  const auto peer =
      world.messenger->add({.via = net::Identity::Via::kUnix, .has_uid = true, .uid = 1001, .gids = {1001}});
  Envelope hello;
  hello.set_version(kProtocolVersion);
  hello.set_id(1);
  hello.mutable_hello();
  world.messenger->forget_replies();
  world.messenger->deliver(peer, hello);
  world.run();
  CHECK(static_cast<Code>(world.reply(peer, 1)->error().code()) == Code::kBusy);
}

TEST_CASE("a group ends with the server, which says so") {
  Scene scene(1);
  scene.release(3, 0);
  scene.world.start();
  scene.world.heartbeats();
  scene.controller.connect();
  scene.member[0]->connect();
  CHECK_THAT(heard(scene.controller, scene.release(4, 0)), Catch::Contains("the server was started again"));
  CHECK(heard(*scene.member[0], scene.await(0, 0)).starts_with("not-found"));
  CHECK(code_of(scene.member[0]->ask(seat_request(scene.token))) == Code::kNotFound);
  CHECK(code_of(scene.controller.ask(close_request(scene.group))) == Code::kOk);
}

TEST_CASE("only the controller releases and closes, and a member speaks for itself, of rounds that can be") {
  Scene scene(2);
  Client& other = *scene.member[1];
  CHECK(code_of(other.ask(release_request(scene.group, 1, 0))) == Code::kPermission);
  CHECK(code_of(other.ask(close_request(scene.group))) == Code::kPermission);
  CHECK(code_of(other.ask(await_request(scene.group, 0, 0))) == Code::kPermission);
  CHECK(code_of(other.ask(await_request(scene.group, 2, 0))) == Code::kInvalid);
  CHECK(code_of(other.ask(await_request(scene.group, 1, 1))) == Code::kInvalid);
  CHECK(code_of(scene.controller.ask(release_request(scene.group, 1, 2))) == Code::kInvalid);
  CHECK(code_of(scene.controller.ask(release_request(scene.group + 1, 1, 0))) == Code::kNotFound);
}

TEST_CASE("sessions of the group's user count with it, and hear its value before, until it ends") {
  Scene scene(1);
  const auto count = [&](Client& client, std::int64_t add) -> std::string {
    Envelope request;
    request.mutable_add_to_counter()->set_group(scene.group);
    request.mutable_add_to_counter()->set_add(add);
    const auto reply = client.ask(request);
    if (!reply) return std::string(code_name(reply.error().code));
    return std::to_string(reply->add_to_counter_reply().before());
  };
  Client other(scene.world), stranger(scene.world, 1001);
  CHECK(count(scene.controller, 5) == "0");
  CHECK(count(*scene.member[0], 7) == "5");
  CHECK(count(other, -12) == "12");
  CHECK(count(other, -1) == "invalid");
  CHECK(count(other, INT64_MAX) == "0");
  CHECK(count(other, 1) == "invalid");
  CHECK(count(other, INT64_MIN) == "invalid");
  CHECK(count(other, 0) == std::to_string(INT64_MAX));
  CHECK(count(stranger, 0) == "permission-denied");
  CHECK(code_of(scene.controller.ask(close_request(scene.group))) == Code::kOk);
  CHECK(count(other, 0) == "not-found");
}

}  // namespace pif::server::testing
