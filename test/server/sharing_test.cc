// Files that several write: who may share and join, what becomes of a file whose members are done, dropped or gone, and
// what a restart leaves of them.
#include "server/sharing.h"

#include "../../server/src/context/tokens.h"
#include "pif/wire/file_states.h"

namespace pif::server::testing {
namespace {

constexpr std::int64_t kDay = 24 * 3600;

// What the server says of the file to an LFS: 1 pending, 2 committed, 4 given up.
std::uint32_t state_of(World& world, std::uint64_t file) {
  Envelope request;
  request.set_version(kProtocolVersion);
  request.set_id(77);
  request.set_capability(world.manage());
  request.mutable_file_states()->add_files(file);
  world.messenger->forget_replies();
  world.messenger->deliver(world.lfs_peer(1), request);
  world.run();
  const auto reply = world.reply(world.lfs_peer(1), 77);
  REQUIRE(reply);
  return reply->file_states_reply().states(0);
}
constexpr std::uint32_t kIsPending = 1, kIsCommitted = 2;

// LFSs that were told that the file was given up.
std::size_t lfss_told(World& world, std::uint64_t file) {
  std::size_t count = 0;
  for (const auto& [node, all] : world.settles({1, 2, 3, 4})) {
    for (const auto& settle : all)
      count += static_cast<std::size_t>(std::count(settle.aborted().begin(), settle.aborted().end(), file));
  }
  return count;
}

void restart(World& world) {
  world.start();
  world.heartbeats();
}

}  // namespace

TEST_CASE("whoever joins gets all that is needed to write, as it was when the file was begun") {
  World world;
  Client creator(world), other(world);
  auto request = Client::create_request("/f");
  (*request.mutable_create()->mutable_named())["unit"] = "mm";
  const auto made = creator.ask(request)->create_reply();
  const auto shared = creator.ask(share_request(made.file(), {11, 12, 13, 14}));
  REQUIRE(shared);
  const auto joined = join(other, shared->share_reply().token());
  CHECK(joined.file() == made.file());
  CHECK(joined.member() == 1);
  CHECK(joined.name() == "f");
  CHECK(joined.format().record_length() == 100);
  CHECK(joined.layout().SerializeAsString() == made.layout().SerializeAsString());
  REQUIRE(joined.nodes_size() == 4);
  for (int i = 0; i < 4; ++i) CHECK(joined.nodes(i).SerializeAsString() == made.nodes(i).SerializeAsString());
  CHECK(joined.epoch() == made.epoch());
  CHECK(joined.view() == made.view());
  CHECK(std::vector<std::uint64_t>(joined.incarnations().begin(), joined.incarnations().end()) ==
        std::vector<std::uint64_t>{11, 12, 13, 14});
  CHECK(joined.named().at("unit") == "mm");
  const auto capability = verify_capability(world.key, joined.capability(), world.clock.wall_seconds());
  REQUIRE(capability);
  CHECK(capability->file.value == made.file());
  CHECK(capability->rights == (kMayCreate | kMayRead));
  CHECK(capability->uid == 500);
  CHECK_FALSE(other.renew(made.file()).empty());
  require_sound(world);
}

TEST_CASE("a file is shared first by who creates it, and by any member from then on") {
  World world;
  Client creator(world), other(world), stranger(world), bert(world, 1002);
  const auto file = creator.create("/f")->file();
  const auto early = other.ask(share_request(file));
  CHECK(early.error().code == Code::kPermission);
  CHECK_THAT(early.error().text, Catch::Contains("only the program that creates it"));
  CHECK(bert.ask(share_request(file)).error().code == Code::kPermission);
  const std::string token = share(creator, file);
  CHECK(share(creator, file) == token);  // of the same second
  CHECK(members(creator, file) == "writing");
  join(other, token);
  CHECK(code_of(stranger.ask(share_request(file))) == Code::kPermission);
  CHECK(join(stranger, share(other, file)).member() == 2);
  CHECK(members(creator, file) == "writing, writing, writing");
}

TEST_CASE("records of variable length are not shared, and neither is a file whose LFSs are not all named") {
  World world;
  Client client(world);
  for (const std::uint32_t kind : {2u, 3u}) {
    auto request = Client::create_request("/lines");
    request.mutable_create()->mutable_format()->set_kind(kind);
    request.mutable_create()->mutable_format()->set_record_length(0);
    const auto made = client.ask(request);
    REQUIRE(made);
    const auto shared = client.ask(share_request(made->create_reply().file()));
    CHECK(shared.error().code == Code::kUnsupported);
    CHECK_THAT(shared.error().text, Catch::Contains("an order that only one can give"));
  }
  const auto file = client.create("/f")->file();
  CHECK(code_of(client.ask(share_request(file, {1, 2, 3}))) == Code::kInvalid);
  CHECK(code_of(client.ask(share_request(file + 1000))) == Code::kStaleFile);
  CHECK(code_of(client.ask(share_request(client.put("/done")))) == Code::kStaleFile);
}

TEST_CASE("a file with parity is not shared any more when the view has changed since it was begun") {
  World world;
  Client client(world);
  auto request = Client::create_request("/f");
  request.mutable_create()->set_bevy(2);
  const auto made = client.ask(request);
  REQUIRE(made);
  const auto other = client.ask(Client::create_request("/g"));
  const auto shared = client.ask(request);
  REQUIRE(shared);
  share(client, shared->create_reply().file());
  REQUIRE(done(client, shared->create_reply().file()) == Code::kOk);
  Envelope lost;
  lost.mutable_node_lost()->set_node(4);
  lost.mutable_node_lost()->set_force(true);
  world.clock.advance(std::chrono::seconds(20));
  REQUIRE(client.ask(lost));
  CHECK(code_of(client.ask(share_request(made->create_reply().file()))) == Code::kOldView);
  CHECK(code_of(client.ask(share_request(other->create_reply().file()))) == Code::kOk);
  CHECK(commit(client, shared->create_reply().file()) == Code::kOldView);  // whatever the request says
}

TEST_CASE("a token is good for its user and for a day, and a forged one never") {
  SharedScene scene;
  World& world = scene.world;
  Client root(world, 0), third(world);
  CHECK(code_of(root.ask(join_request(scene.token))) == Code::kPermission);
  std::string forged = scene.token;
  forged[3] = static_cast<char>(forged[3] ^ 1);
  const auto tried = third.ask(join_request(forged));
  CHECK(tried.error().code == Code::kBadCapability);
  CHECK_THAT(tried.error().text, Catch::Contains("not one that this file system issued"));
  CHECK(code_of(third.ask(join_request(""))) == Code::kBadCapability);
  const std::string of_a_group = mint_token(world.key, kGroupTag, {scene.file, 500, world.clock.wall_seconds() + 9});
  CHECK(code_of(third.ask(join_request(of_a_group))) == Code::kBadCapability);
  world.clock.advance(std::chrono::seconds(kDay));
  CHECK(join(third, scene.token).member() == 2);
  Client late(world);
  world.clock.advance(std::chrono::seconds(1));
  const auto expired = late.ask(join_request(scene.token));
  CHECK(expired.error().code == Code::kBadCapability);
  CHECK_THAT(expired.error().text, Catch::Contains("expired 1 s ago"));
  CHECK(join(late, share(scene.first, scene.file)).member() == 3);
}

TEST_CASE("a token has the bytes that the protocol says") {
  ClusterKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
  const std::string token = mint_token(key, kJoinTag, {77, 1000, 1'700'000'000});
  std::string hex;
  for (const char c : token) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  CHECK(token.size() == 37);
  CHECK(hex.substr(0, 42) == "4a4d00000000000000e803000000f1536500000000");
  CHECK(verify_token(key, kJoinTag, token, 1000, 1'700'000'000).value() == 77);
  CHECK(verify_token(key, kGroupTag, token, 1000, 1'700'000'000).error().code == Code::kBadCapability);
  const std::string longer = sign(key, kJoinTag, token.substr(1));
  CHECK(verify_token(key, kJoinTag, longer, 1000, 1'700'000'000).error().code == Code::kBadCapability);
}

TEST_CASE("nobody joins twice, nor after the commit, nor what was given up") {
  SharedScene scene;
  Client third(scene.world);
  for (Client* member : {&scene.first, &scene.second}) {
    const auto again = member->ask(join_request(scene.token));
    CHECK(again.error().code == Code::kExists);
    CHECK_THAT(again.error().text, Catch::Contains("(prog500) of f already"));
  }
  const auto lost = scene.first.create("/lost")->file();
  const std::string other = share(scene.first, lost);
  Envelope abort;
  abort.mutable_abort()->set_file(lost);
  REQUIRE(scene.second.ask(abort));
  CHECK(code_of(third.ask(join_request(other))) == Code::kStaleFile);
  REQUIRE(done(scene.first, scene.file) == Code::kOk);
  REQUIRE(done(scene.second, scene.file) == Code::kOk);
  REQUIRE(commit(scene.second, scene.file) == Code::kOk);
  const auto late = third.ask(join_request(scene.token));
  CHECK(late.error().code == Code::kStaleFile);
  CHECK_THAT(late.error().text, Catch::Contains("join after commit"));
}

TEST_CASE("a join that is sent again gets its first answer, after a restart of the server too") {
  SharedScene scene;
  Client third(scene.world);
  const auto first = third.ask(join_request(scene.token), 40);
  REQUIRE(first);
  const auto again = third.ask(join_request(scene.token), 40);
  REQUIRE(again);
  CHECK(again->SerializeAsString() == first->SerializeAsString());
  restart(scene.world);
  third.connect();
  const auto later = third.ask(join_request(scene.token), 40);
  REQUIRE(later);
  CHECK(later->join_reply().member() == 2);
  CHECK(code_of(third.ask(join_request(scene.token), 41)) == Code::kExists);
  CHECK(members(third, scene.file) == "gone, gone, writing");
}

TEST_CASE("a file is committed once all members are done, by any of them, and not before") {
  SharedScene scene;
  const auto early = scene.first.ask(Client::commit_request(scene.file));
  CHECK(early.error().code == Code::kBusy);
  CHECK_THAT(early.error().text, Catch::Contains("member 0 (prog500) of f is writing"));
  REQUIRE(done(scene.first, scene.file, 3) == Code::kOk);
  const auto still = scene.first.ask(Client::commit_request(scene.file));
  CHECK(still.error().code == Code::kBusy);
  CHECK_THAT(still.error().text, Catch::Contains("member 1 (prog500) of f is writing"));
  CHECK(members(scene.first, scene.file) == "done 3, writing");
  REQUIRE(done(scene.second, scene.file, 10) == Code::kOk);
  CHECK(members(scene.first, scene.file) == "done 3, done 10");
  REQUIRE(commit(scene.second, scene.file, 10) == Code::kOk);
  CHECK(scene.first.stat("/f")->file_length().records() == 10);
  CHECK(commit(scene.first, scene.file, 10) == Code::kOk);
  CHECK(state_of(scene.world, scene.file) == kIsCommitted);
  CHECK(scene.first.nodes().pending() == 0);
  require_sound(scene.world);
}

TEST_CASE("a file is not committed shorter than a member has written, and longer it is") {
  SharedScene scene;
  REQUIRE(done(scene.first, scene.file, 3) == Code::kOk);
  REQUIRE(done(scene.second, scene.file, 10) == Code::kOk);
  const auto cut = scene.first.ask(Client::commit_request(scene.file, 9));
  CHECK(cut.error().code == Code::kInvalid);
  CHECK_THAT(cut.error().text, Catch::Contains("member 1 (prog500) of f has written 10 records (1000 bytes)"));
  auto by_a_byte = Client::commit_request(scene.file, 10);
  by_a_byte.mutable_commit()->mutable_file_length()->set_bytes(999);
  CHECK(code_of(scene.first.ask(by_a_byte)) == Code::kInvalid);
  CHECK(commit(scene.first, scene.file, 12) == Code::kOk);
}

TEST_CASE("who is done says so of a length that can be, once or often, and only members do") {
  SharedScene scene;
  Client stranger(scene.world), bert(scene.world, 1002);
  CHECK(done(stranger, scene.file) == Code::kPermission);
  CHECK(done(bert, scene.file) == Code::kPermission);
  auto impossible = done_request(scene.file, 7);
  impossible.mutable_member_done()->mutable_file_length()->set_bytes(701);
  CHECK(code_of(scene.first.ask(impossible)) == Code::kInvalid);
  CHECK(members(scene.first, scene.file) == "writing, writing");
  REQUIRE(done(scene.first, scene.file, 7) == Code::kOk);
  REQUIRE(done(scene.first, scene.file, 5) == Code::kOk);  // a message that was late
  CHECK(members(scene.first, scene.file) == "done 7, writing");
  REQUIRE(done(scene.first, scene.file, 8) == Code::kOk);
  CHECK(members(scene.first, scene.file) == "done 8, writing");
  CHECK(done(scene.first, scene.file + 1000) == Code::kStaleFile);
}

TEST_CASE("that a member is done is heard again by who asks again after the commit, and by nobody else") {
  SharedScene scene;
  REQUIRE(scene.second.ask(done_request(scene.file, 10), 40));
  REQUIRE(scene.first.ask(drop_request(scene.file, 0)));
  REQUIRE(commit(scene.second, scene.file) == Code::kOk);
  CHECK(code_of(scene.second.ask(done_request(scene.file, 10), 40)) == Code::kOk);
  CHECK(done(scene.first, scene.file) == Code::kStaleFile);  // its part does not count
}

TEST_CASE("a member that is gone is named to who commits, comes back, or is dropped") {
  SharedScene scene;
  REQUIRE(done(scene.first, scene.file) == Code::kOk);
  scene.second.close();
  CHECK(members(scene.first, scene.file) == "done 10, gone");
  const auto refused = scene.first.ask(Client::commit_request(scene.file));
  CHECK(refused.error().code == Code::kUnavailable);
  CHECK_THAT(refused.error().text, Catch::Contains("member 1 (prog500) of f is gone"));
  CHECK_THAT(refused.error().text, Catch::Contains("drop it"));
  SECTION("it comes back within the half minute") { scene.world.live(20); }
  SECTION("it comes back when it was forgotten already") { scene.world.live(100); }
  scene.second.connect();
  CHECK(members(scene.first, scene.file) == "done 10, writing");
  CHECK_FALSE(scene.second.renew(scene.file).empty());
  scene.second.close();
  scene.world.live(100);
  REQUIRE(scene.first.ask(drop_request(scene.file, 1)));
  CHECK(members(scene.first, scene.file) == "done 10, dropped");
  CHECK(commit(scene.first, scene.file) == Code::kOk);
}

TEST_CASE("who was dropped is told so, gets no right any more, and does not join again") {
  SharedScene scene;
  REQUIRE(scene.first.ask(drop_request(scene.file, 1)));
  REQUIRE(scene.first.ask(drop_request(scene.file, 1)));
  CHECK(done(scene.second, scene.file) == Code::kCancelled);
  CHECK(code_of(scene.second.ask(join_request(scene.token))) == Code::kCancelled);
  CHECK(code_of(scene.second.ask(share_request(scene.file))) == Code::kCancelled);
  CHECK(scene.second.renew(scene.file).empty());
  CHECK_FALSE(scene.first.renew(scene.file).empty());
  CHECK(members(scene.second, scene.file) == "writing, dropped");
}

TEST_CASE("the word of a member that is done counts, though somebody drops it, and only the user drops") {
  SharedScene scene;
  Client bert(scene.world, 1002), root(scene.world, 0);
  CHECK(code_of(bert.ask(drop_request(scene.file, 1))) == Code::kPermission);
  CHECK(code_of(bert.ask(members_request(scene.file))) == Code::kPermission);
  CHECK(code_of(scene.first.ask(drop_request(scene.file, 2))) == Code::kNotFound);
  REQUIRE(done(scene.second, scene.file, 10) == Code::kOk);
  REQUIRE(root.ask(drop_request(scene.file, 1)));
  CHECK(members(root, scene.file) == "writing, done 10");
  REQUIRE(root.ask(drop_request(scene.file, 0)));
  CHECK(commit(scene.first, scene.file, 9) == Code::kInvalid);
  CHECK(commit(scene.first, scene.file, 10) == Code::kOk);
}

TEST_CASE("a file that nobody shares has no members, and is committed as before") {
  World world;
  Client client(world);
  const auto file = client.create("/f")->file();
  CHECK(members(client, file).empty());
  CHECK(done(client, file) == Code::kPermission);
  CHECK(code_of(client.ask(drop_request(file, 0))) == Code::kNotFound);
  CHECK(commit(client, file) == Code::kOk);
  CHECK(code_of(client.ask(members_request(file))) == Code::kStaleFile);
}

TEST_CASE("a shared file is given up half a minute after the last of its members went, and LFSs hear it") {
  SharedScene scene;
  Client watcher(scene.world);
  SECTION("whoever created it first") {
    scene.first.close();
    scene.world.live(100);
    CHECK(state_of(scene.world, scene.file) == kIsPending);
    scene.second.close();
  }
  SECTION("whoever joined first") {
    REQUIRE(done(scene.second, scene.file) == Code::kOk);
    scene.second.close();
    scene.world.live(100);
    CHECK(state_of(scene.world, scene.file) == kIsPending);
    scene.first.close();
  }
  SECTION("both at once") {
    scene.second.close();
    scene.first.close();
  }
  SECTION("one that came back after it was forgotten") {
    scene.second.close();
    scene.world.live(100);
    scene.second.connect();
    scene.first.close();
    scene.world.live(100);
    CHECK(state_of(scene.world, scene.file) == kIsPending);
    scene.second.close();
  }
  scene.world.live(28);
  CHECK(state_of(scene.world, scene.file) == kIsPending);
  scene.world.live(4);
  CHECK(state_of(scene.world, scene.file) == wire::kFileGivenUp);
  CHECK(watcher.nodes().pending() == 0);
  CHECK(lfss_told(scene.world, scene.file) == 4);
  CHECK(done(watcher, scene.file) == Code::kStaleFile);
  require_sound(scene.world);
}

TEST_CASE("after a restart those who come back go on, and those who do not are gone after half a minute") {
  SharedScene scene;
  Client third(scene.world);
  join(third, scene.token);
  REQUIRE(done(scene.first, scene.file) == Code::kOk);
  restart(scene.world);
  scene.second.connect();
  CHECK(members(scene.second, scene.file) == "done 10, writing, gone");
  scene.world.live(29);
  CHECK(scene.second.nodes().pending() == 1);
  third.connect();
  CHECK(members(third, scene.file) == "done 10, writing, writing");
  third.close();
  scene.world.live(100);
  CHECK(members(scene.second, scene.file) == "done 10, writing, gone");
  REQUIRE(done(scene.second, scene.file, 11) == Code::kOk);
  CHECK(commit(scene.second, scene.file, 11) == Code::kUnavailable);
  REQUIRE(scene.second.ask(drop_request(scene.file, 2)));
  CHECK(commit(scene.second, scene.file, 11) == Code::kOk);
  CHECK(scene.second.stat("/f")->file_length().records() == 11);
  require_sound(scene.world);
}

TEST_CASE("after a restart a file of which no member comes back is given up, and LFSs hear it") {
  SharedScene scene;
  SECTION("members were writing") {}
  SECTION("all were done") {
    REQUIRE(done(scene.first, scene.file) == Code::kOk);
    REQUIRE(done(scene.second, scene.file) == Code::kOk);
  }
  SECTION("whoever created it was dropped") {
    REQUIRE(scene.first.ask(drop_request(scene.file, 0)));
    REQUIRE(done(scene.second, scene.file) == Code::kOk);
  }
  restart(scene.world);
  scene.world.live(29);
  CHECK(state_of(scene.world, scene.file) == kIsPending);
  scene.world.live(3);
  CHECK(state_of(scene.world, scene.file) == wire::kFileUnknown);
  CHECK(lfss_told(scene.world, scene.file) == 4);
  CHECK(Client(scene.world).nodes().pending() == 0);
  require_sound(scene.world);
}

TEST_CASE("a member that is done keeps the file for as long as it is there, after a restart too") {
  SharedScene scene;
  REQUIRE(done(scene.second, scene.file) == Code::kOk);
  restart(scene.world);
  scene.second.connect();
  scene.world.live(100);
  CHECK(members(scene.second, scene.file) == "gone, done 10");
  REQUIRE(scene.second.ask(drop_request(scene.file, 0)));
  CHECK(commit(scene.second, scene.file) == Code::kOk);
}

TEST_CASE("a join whose turn fails leaves the file and its members as they were") {
  SharedScene scene;
  Client third(scene.world);
  scene.world.store->commits_to_fail = 1;
  CHECK(code_of(third.ask(join_request(scene.token))) == Code::kIo);
  CHECK(members(scene.first, scene.file) == "writing, writing");
  CHECK(join(third, scene.token).member() == 2);
  scene.world.store->commits_to_fail = 1;
  CHECK(done(third, scene.file) == Code::kIo);
  CHECK(members(scene.first, scene.file) == "writing, writing, writing");
  const auto other = scene.first.create("/g")->file();
  scene.world.store->commits_to_fail = 1;
  CHECK(code_of(scene.first.ask(share_request(other))) == Code::kIo);
  CHECK(members(scene.first, other).empty());
  third.close();
  scene.second.close();
  scene.first.close();
  scene.world.store->commits_to_fail = 1;
  scene.world.live(70);
  CHECK(Client(scene.world).nodes().pending() == 0);
  require_sound(scene.world);
}

TEST_CASE("a file has at most 4,096 members, who are told of in pages that fit every transport") {
  World world;
  Client creator(world);
  const auto file = creator.create("/f")->file();
  const std::string token = share(creator, file);
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 1; i < 4096; ++i) {
    others.push_back(std::make_unique<Client>(world));
    others.back()->post(join_request(token));
    if (i % 100 == 0) world.messenger->forget_replies();
  }
  world.run();
  Client last(world);
  CHECK(code_of(last.ask(join_request(token))) == Code::kTooLarge);
  std::uint32_t next = 0;
  for (bool more = true; more;) {
    const auto page = creator.ask(members_request(file, next));
    REQUIRE(page);
    CHECK(page->ByteSizeLong() < kUnixPacketBytesMax);
    more = page->members_reply().more();
    for (const auto& one : page->members_reply().members()) {
      if (one.member() != next++ || one.state() != 1) FAIL("member " << one.member() << " after " << next - 1);
    }
  }
  CHECK(next == 4096);
  CHECK(creator.ask(members_request(file, 5000))->members_reply().members().empty());
}

}  // namespace pif::server::testing
