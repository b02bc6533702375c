// Files whose name is there before their commit, and those that take another one's place.
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

Result<proto::CreateReply> create_now(Client& client, const std::string& path, bool exclusive = false) {
  Envelope request = Client::create_request(path);
  request.mutable_create()->set_now(true);
  request.mutable_create()->set_exclusive(exclusive);
  const auto reply = client.ask(request);
  if (!reply) return fail(reply.error());
  return reply->create_reply();
}
Result<proto::CreateReply> create_instead_of(Client& client, std::uint64_t file) {
  Envelope request;
  request.mutable_create()->set_instead_of(file);
  const auto reply = client.ask(request);
  if (!reply) return fail(reply.error());
  return reply->create_reply();
}
Code chmod(Client& client, const std::string& path, std::uint32_t mode) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  request.mutable_set_attributes()->set_mode(mode);
  const auto reply = client.ask(request);
  return reply ? Code::kOk : reply.error().code;
}
Code commit(Client& client, std::uint64_t file, std::uint64_t records = 10) {
  const auto reply = client.ask(Client::commit_request(file, records));
  return reply ? Code::kOk : reply.error().code;
}

}  // namespace

TEST_CASE("a name that is there at once is that of an empty file, whose place the commit takes") {
  World world;
  Client client(world), other(world, 1001);
  const auto made = create_now(client, "/f", true);
  REQUIRE(made);
  const auto empty = other.stat("/f");
  REQUIRE(empty);
  CHECK(empty->id() == made->entry().id());
  CHECK(empty->file_length().bytes() == 0);
  CHECK(made->file() != empty->id());
  CHECK(create_now(client, "/f", true).error().code == Code::kExists);
  CHECK(client.nodes().pending() == 1);

  REQUIRE(client.rename("/f", "/g"));
  CHECK(chmod(client, "/g", 0600) == Code::kOk);
  CHECK(commit(client, made->file(), 7) == Code::kOk);
  CHECK_FALSE(client.exists("/f"));
  const auto now = client.stat("/g");
  REQUIRE(now);
  CHECK(now->id() == made->file());
  CHECK(now->inode() == empty->id());
  CHECK(now->attributes().mode() == 0600);
  CHECK(now->file_length().records() == 7);
  CHECK(client.reopen(empty->id()).error().code == Code::kStaleFile);
  CHECK(commit(client, made->file(), 7) == Code::kOk);  // asked again
  require_sound(world);
}

TEST_CASE("a file that is given up, or whose session ends, leaves the one whose place it was to take") {
  World world;
  Client client(world);
  std::uint64_t old = 0;
  {
    Client dying(world, 500);
    REQUIRE(create_now(dying, "/f"));
    old = client.stat("/f")->id();
    REQUIRE(create_instead_of(dying, old));
    const auto made = create_instead_of(dying, old);
    REQUIRE(made);
    Envelope abort;
    abort.mutable_abort()->set_file(made->file());
    REQUIRE(dying.ask(abort));
    CHECK(client.nodes().pending() == 2);
    dying.close();
  }
  world.live(60);
  CHECK(client.nodes().pending() == 0);
  CHECK(client.stat("/f")->id() == old);
  require_sound(world);
}

TEST_CASE("what takes a file's place has its owner, mode, attributes and inode, whoever wrote it") {
  World world;
  Client owner(world, 1001), writer(world, 1002), stranger(world, 1003);
  Client root(world, 0);
  REQUIRE(root.mkdir("/d", false, 0777));
  auto request = Client::create_request("/d/f", false, 3);
  request.mutable_create()->set_mode(0666);
  (*request.mutable_create()->mutable_named())["header"] = "x";
  const auto first = owner.ask(request);
  REQUIRE(first);
  const std::uint64_t old = first->create_reply().file();
  REQUIRE(commit(owner, old) == Code::kOk);

  const auto made = create_instead_of(writer, old);
  REQUIRE(made);
  CHECK(made->layout().nodes_size() == 3);
  CHECK(made->layout().SerializeAsString() == first->create_reply().layout().SerializeAsString());
  CHECK(made->format().record_length() == 100);
  CHECK(made->named().at("header") == "x");
  CHECK(commit(stranger, made->file()) == Code::kPermission);
  CHECK(commit(writer, made->file(), 3) == Code::kOk);
  const auto second = owner.stat("/d/f");
  REQUIRE(second);
  CHECK(second->attributes().owner() == 1001);
  CHECK(second->attributes().mode() == 0666);
  CHECK(second->attributes().named().at("header") == "x");
  CHECK(second->inode() == old);
  const auto again = create_instead_of(owner, second->id());
  REQUIRE(again);
  CHECK(commit(owner, again->file(), 4) == Code::kOk);
  CHECK(owner.stat("/d/f")->inode() == old);

  REQUIRE(chmod(owner, "/d/f", 0644) == Code::kOk);
  CHECK(create_instead_of(writer, again->file()).error().code == Code::kPermission);
  require_sound(world);
}

TEST_CASE("of two that rewrite a file the last commit wins, unless it is meant for what the other one has replaced") {
  World world;
  Client client(world);
  const std::uint64_t old = client.put("/f");
  const auto first = create_instead_of(client, old), second = create_instead_of(client, old),
             third = create_instead_of(client, old);
  REQUIRE(first);
  REQUIRE(second);
  REQUIRE(third);
  CHECK(commit(client, first->file()) == Code::kOk);
  CHECK(commit(client, second->file()) == Code::kOk);
  CHECK(client.stat("/f")->id() == second->file());
  CHECK(client.stat("/f")->inode() == old);
  Envelope meant = Client::commit_request(third->file());
  *meant.mutable_commit()->mutable_if_length() = client.stat("/f")->file_length();
  CHECK(client.ask(meant).error().code == Code::kStaleFile);
  CHECK(create_instead_of(client, old).error().code == Code::kStaleFile);
  client.put("/other");
  REQUIRE(client.rename("/other", "/f"));
  CHECK(commit(client, third->file()) == Code::kStaleFile);  // that is no version of it
  require_sound(world);
}

TEST_CASE("a file that was removed or replaced meanwhile is not replaced") {
  World world;
  Client client(world);
  const std::uint64_t old = client.put("/f");
  const auto third = create_instead_of(client, old);
  REQUIRE(third);
  REQUIRE(client.remove("/f") == Code::kOk);
  CHECK(commit(client, third->file()) == Code::kStaleFile);
  CHECK_FALSE(client.exists("/f"));
  require_sound(world);
}

TEST_CASE("a place is taken only at the length that is asked for") {
  World world;
  Client client(world);
  const std::uint64_t old = client.put("/f", 10);
  const auto made = create_instead_of(client, old);
  REQUIRE(made);
  Envelope request = Client::commit_request(made->file(), 3);
  request.mutable_commit()->mutable_if_length()->set_records(9);
  request.mutable_commit()->mutable_if_length()->set_bytes(900);
  CHECK(client.ask(request).error().code == Code::kRetry);
  CHECK(client.stat("/f")->id() == old);
  request.mutable_commit()->mutable_if_length()->set_records(10);
  request.mutable_commit()->mutable_if_length()->set_bytes(1000);
  CHECK(client.ask(request));
  CHECK(client.stat("/f")->id() == made->file());
}

TEST_CASE("a new version is on other LFSs where one of the old one's is not there") {
  World world;
  Client client(world);
  const std::uint64_t old = client.put("/f");
  for (int i = 0; i < 60; ++i) {
    world.clock.advance(std::chrono::seconds(1));
    for (std::uint32_t id = 1; id <= 3; ++id) world.messenger->deliver(world.lfs_peer(id), world.heartbeat(id));
    world.run();
  }
  const auto made = create_instead_of(client, old);
  REQUIRE(made);
  CHECK(made->layout().nodes_size() == 3);
}

TEST_CASE("a file with forks is not replaced, and neither forks nor placed files have their name at once") {
  World world;
  Client client(world);
  const std::uint64_t file = client.put("/f");
  Envelope fork = Client::create_request("/f/0/data", true);
  REQUIRE(client.ask(fork));
  CHECK(create_instead_of(client, file).error().code == Code::kUnsupported);
  fork = Client::create_request("/f/0/more");
  fork.mutable_create()->set_now(true);
  CHECK(client.ask(fork).error().code == Code::kInvalid);
  Envelope placed = Client::create_request("/p");
  placed.mutable_create()->set_now(true);
  placed.mutable_create()->set_placed(true);
  CHECK(client.ask(placed).error().code == Code::kInvalid);
  Envelope both = Client::create_request("/p");
  both.mutable_create()->set_instead_of(file);
  CHECK(client.ask(both).error().code == Code::kInvalid);
}

TEST_CASE("a file that is opened by its id is open once more each time") {
  World world;
  Client client(world), other(world, 1001);
  const std::uint64_t file = client.put("/f");
  Envelope open;
  open.mutable_open()->set_file(file);
  open.mutable_open()->set_rights(kMayRead | kMayWrite);
  open.mutable_open()->set_anew(true);
  REQUIRE(client.ask(open));
  REQUIRE(client.ask(open));
  CHECK(other.open("/f", kMayRead, true).error().code == Code::kBusy);
  client.close_file(file);
  CHECK(other.open("/f", kMayRead, true).error().code == Code::kBusy);
  client.close_file(file);
  CHECK(other.open("/f", kMayRead, true));
}

}  // namespace pif::server::testing
