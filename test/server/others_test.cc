// Entries without bytes: symbolic links, fifos, sockets, devices.
#include "pif/wire/values.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

Envelope other_request(const std::string& path, std::uint32_t kind, const std::string& target = {},
                       std::uint64_t device = 0) {
  Envelope request;
  request.mutable_create()->set_path(path);
  request.mutable_create()->set_mode(0777);
  request.mutable_create()->mutable_other()->set_kind(kind);
  request.mutable_create()->mutable_other()->set_target(target);
  request.mutable_create()->mutable_other()->set_device(device);
  return request;
}
Code make(Client& client, const Envelope& request) {
  const auto reply = client.ask(request);
  return reply ? Code::kOk : reply.error().code;
}

}  // namespace

TEST_CASE("a link is an entry of its own, which nothing follows") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  client.put("/d/f");
  REQUIRE(make(client, other_request("/link", wire::kOtherLink, "d\xff")) == Code::kOk);
  const auto entry = client.stat("/link");
  REQUIRE(entry);
  CHECK(entry->type() == proto::OTHER);
  CHECK(entry->other().kind() == wire::kOtherLink);
  CHECK(entry->other().target() == "d\xff");
  CHECK(client.list("/")->entries.size() == 2);
  CHECK(client.stat("/link/f").error().code == Code::kNotDirectory);
  CHECK_THAT(client.stat("/link/f").error().text, Catch::Contains("/link is a symbolic link, not a folder"));
  CHECK(client.open("/link").error().code == Code::kInvalid);
  CHECK(client.reopen(entry->id()).error().code == Code::kInvalid);
  CHECK(make(client, other_request("/link", wire::kOtherLink, "x")) == Code::kExists);
  CHECK(make(client, other_request("/d/f", wire::kOtherLink, "x")) == Code::kExists);
  CHECK(client.nodes().files() == 2);
  CHECK(client.nodes().folders() == 2);
  require_sound(world);
}

TEST_CASE("what has no bytes is renamed, replaced and removed as files are") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  REQUIRE(make(client, other_request("/d/a", wire::kOtherLink, "x")) == Code::kOk);
  REQUIRE(make(client, other_request("/d/b", wire::kOtherFifo)) == Code::kOk);
  REQUIRE(client.rename("/d/a", "/d/b"));
  CHECK(client.stat("/d/b")->other().target() == "x");
  CHECK_FALSE(client.exists("/d/a"));
  client.put("/d/b");
  CHECK(client.stat("/d/b")->type() == proto::FILE_ENTRY);
  REQUIRE(make(client, other_request("/d/s", wire::kOtherSocket)) == Code::kOk);
  CHECK(client.rename("/d/s", "/d/new/").error().code == Code::kNotDirectory);
  REQUIRE(client.rename("/d/s", "/d/b"));
  CHECK(client.remove("/d/b") == Code::kOk);
  REQUIRE(make(client, other_request("/d/s", wire::kOtherSocket)) == Code::kOk);
  CHECK(client.remove("/d", true) == Code::kOk);
  CHECK(client.nodes().files() == 0);
  require_sound(world);
}

TEST_CASE("targets, numbers and kinds that cannot be are refused, and devices are root's") {
  World world;
  Client root(world, 0), user(world, 1001);
  REQUIRE(root.mkdir("/d", false, 0777));
  const auto code = [&](std::uint32_t kind, const std::string& target, std::uint64_t device) {
    return make(user, other_request("/d/x", kind, target, device));
  };
  CHECK(code(wire::kOtherLink, "", 0) == Code::kInvalid);
  CHECK(code(wire::kOtherLink, std::string(4096, 'x'), 0) == Code::kTooLarge);
  CHECK(code(wire::kOtherLink, std::string("a\0b", 3), 0) == Code::kInvalid);
  CHECK(code(wire::kOtherLink, "a", 1) == Code::kInvalid);
  CHECK(code(wire::kOtherFifo, "a", 0) == Code::kInvalid);
  CHECK(code(wire::kOtherSocket, "", 7) == Code::kInvalid);
  CHECK(code(0, "", 0) == Code::kInvalid);
  CHECK(code(6, "", 0) == Code::kInvalid);
  CHECK(code(wire::kOtherBlockDevice, "", 7) == Code::kPermission);
  CHECK(code(wire::kOtherLink, std::string(4095, 'x'), 0) == Code::kOk);
  CHECK(make(root, other_request("/d/null", wire::kOtherCharacterDevice, "", 259)) == Code::kOk);
  CHECK(root.stat("/d/null")->other().device() == 259);
  CHECK(make(user, other_request("/d/f/", wire::kOtherFifo)) == Code::kNotDirectory);
  root.put("/d/f");
  CHECK(make(root, other_request("/d/f/0/x", wire::kOtherFifo)) == Code::kInvalid);
}

}  // namespace pif::server::testing
