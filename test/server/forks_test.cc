// Forks in the directory: who may do what with them, and what becomes of them.
#include "fixture.h"

using namespace pif;
using namespace pif::server::testing;

namespace {

constexpr std::uint32_t kOwner = 500;  // of the file system

Envelope placed_request(const std::string& path, std::uint32_t width = 2) {
  Envelope request = Client::create_request(path, false, width);
  request.mutable_create()->set_placed(true);
  return request;
}
Envelope fork_request(std::uint64_t file, const std::string& fork, bool empty = true) {
  Envelope request = Client::create_request(fork, empty);
  request.mutable_create()->set_fork_of(file);
  return request;
}
Envelope open_request(std::uint64_t file, const std::string& fork) {
  Envelope request;
  request.mutable_open()->set_path(fork);
  request.mutable_open()->set_fork_of(file);
  request.mutable_open()->set_rights(kMayRead);
  return request;
}
Envelope list_request(std::uint64_t file) {
  Envelope request;
  request.mutable_list()->set_fork_of(file);
  return request;
}
Envelope remove_request(std::uint64_t file, const std::string& fork) {
  Envelope request = Client::remove_request({fork});
  request.mutable_remove()->set_fork_of(file);
  return request;
}
Envelope mode_request(const std::string& path, std::uint32_t mode) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  request.mutable_set_attributes()->set_mode(mode);
  return request;
}

Code code_of(Client& client, const Envelope& request) {
  const auto reply = client.ask(request);
  if (!reply) return reply.error().code;
  return reply->has_remove_reply() ? static_cast<Code>(reply->remove_reply().errors(0).code()) : Code::kOk;
}

std::uint64_t begin_placed(Client& client, const std::string& path) {
  const auto reply = client.ask(placed_request(path));
  REQUIRE(reply);
  return reply->create_reply().file();
}

}  // namespace

TEST_CASE("who may read a file sees its forks, who may write it makes and removes them") {
  World world;
  Client owner(world, 1000), other(world, 1001), root(world, kOwner);
  REQUIRE(root.mkdir("/d", false, 0777));
  const std::uint64_t file = owner.put("/d/f");
  REQUIRE(code_of(owner, fork_request(file, "0/a")) == Code::kOk);
  CHECK(other.exists("/d/f/0/a"));
  CHECK(code_of(other, list_request(file)) == Code::kOk);
  CHECK(code_of(other, fork_request(file, "0/b")) == Code::kPermission);
  CHECK(code_of(other, remove_request(file, "0/a")) == Code::kPermission);
  CHECK(other.remove("/d/f/0/a") == Code::kPermission);
  REQUIRE(owner.ask(mode_request("/d/f", 0600)));
  CHECK(other.stat("/d/f/0/a").error().code == Code::kPermission);
  CHECK(code_of(other, list_request(file)) == Code::kPermission);
  CHECK(code_of(other, open_request(file, "0/a")) == Code::kPermission);
  REQUIRE(owner.ask(mode_request("/d/f", 0666)));
  CHECK(code_of(other, fork_request(file, "0/b")) == Code::kOk);
  CHECK(code_of(other, remove_request(file, "0/a")) == Code::kOk);
  require_sound(world);
}

TEST_CASE("forks of a file that is being created are its owner's alone") {
  World world;
  Client owner(world, 1000), other(world, 1001), root(world, kOwner);
  REQUIRE(root.mkdir("/d", false, 0777));
  const std::uint64_t file = begin_placed(owner, "/d/f");
  REQUIRE(code_of(owner, fork_request(file, "1/data")) == Code::kOk);
  const auto fork = owner.ask(open_request(file, "1/data"));
  REQUIRE(fork);
  for (const auto& request : {fork_request(file, "0/data"), open_request(file, "1/data"), list_request(file)})
    CHECK(code_of(other, request) == Code::kStaleFile);
  CHECK(other.reopen(fork->open_reply().entry().id()).error().code == Code::kStaleFile);
  CHECK(code_of(root, open_request(file, "1/data")) == Code::kOk);
  require_sound(world);
  REQUIRE(owner.ask(Client::commit_request(file, 0)));
  CHECK(other.open("/d/f/1/data"));
  require_sound(world);
}

TEST_CASE("forks go with their file, whether that is removed, replaced or given up, also by a program that died") {
  World world;
  Client client(world);
  const auto forked = [&](std::uint64_t file) {
    REQUIRE(code_of(client, fork_request(file, "0/a")) == Code::kOk);
    return client.ask(open_request(file, "0/a"))->open_reply().entry().id();
  };
  const std::uint64_t removed = forked(client.put("/removed"));
  REQUIRE(client.remove("/removed") == Code::kOk);
  const std::uint64_t replaced = forked(client.put("/replaced"));
  client.put("/replaced");
  const std::uint64_t moved_over = forked(client.put("/over"));
  client.put("/mover");
  REQUIRE(client.rename("/mover", "/over"));
  REQUIRE(client.mkdir("/tree"));
  const std::uint64_t in_tree = forked(client.put("/tree/f"));
  REQUIRE(client.remove("/tree", true) == Code::kOk);
  const std::uint64_t given_up_file = begin_placed(client, "/given-up");
  const std::uint64_t given_up = forked(given_up_file);
  Envelope abort;
  abort.mutable_abort()->set_file(given_up_file);
  REQUIRE(client.ask(abort));
  const std::uint64_t late = forked(begin_placed(client, "/late"));
  client.close();
  world.start();  // nobody comes back for it
  world.heartbeats();
  world.live(1000);
  Client again(world);
  for (const std::uint64_t fork : {removed, replaced, moved_over, in_tree, given_up, late}) {
    INFO(fork);
    CHECK(again.reopen(fork).error().code == Code::kStaleFile);
  }
  CHECK(again.nodes().pending() == 0);
  CHECK(again.nodes().files() == 2);
  require_sound(world);
}

TEST_CASE("a placed file is as long as its forks data; it says nothing else of itself") {
  World world;
  Client client(world);
  const std::uint64_t file = begin_placed(client, "/f");
  for (const char* name : {"0/data", "1/data", "1/other"}) {
    const auto fork = client.ask(fork_request(file, name, false));
    REQUIRE(fork);
    REQUIRE(client.ask(Client::commit_request(fork->create_reply().file(), 7)));
  }
  CHECK(code_of(client, Client::commit_request(file, 1)) == Code::kInvalid);
  REQUIRE(client.ask(Client::commit_request(file, 0)));
  CHECK(client.stat("/f")->file_length().bytes() == 1400);
  CHECK(client.list("/")->entries[0].file_length().bytes() == 1400);
  CHECK(client.open("/f")->entry().file_length().records() == 14);
  CHECK(client.stat("/f/1/other")->layout().nodes_size() == 1);
}

TEST_CASE("all that is asked by a file's id is checked") {
  World world;
  Client client(world);
  const std::uint64_t file = client.put("/f");
  for (const char* name : {"", "a", "0", "9/a", "0/", "0/a/b", "/0/a", "00/a"}) {
    INFO(name);
    CHECK(code_of(client, fork_request(file, name)) == Code::kInvalid);
    CHECK(code_of(client, open_request(file, name)) == Code::kInvalid);
    CHECK(code_of(client, remove_request(file, name)) == Code::kInvalid);
  }
  for (const std::uint64_t none : {std::uint64_t{1}, std::uint64_t{999}, UINT64_MAX}) {
    CHECK(code_of(client, fork_request(none, "0/a")) == Code::kStaleFile);
    CHECK(code_of(client, list_request(none)) == Code::kStaleFile);
  }
  Envelope recursive = remove_request(file, "0/a");
  recursive.mutable_remove()->set_recursive(true);
  CHECK(client.ask(recursive).error().code == Code::kInvalid);
}
