// Who is believed to be whom.
#include "fixture.h"

using namespace pif;
using namespace pif::server::testing;

namespace {

Envelope list_request(World& world, const Credential& credential) {
  Envelope request;
  request.set_version(kProtocolVersion);
  request.set_id(77);
  request.set_credential(mint(world.key, credential));
  request.mutable_list()->set_path("/");
  return request;
}

Code ask_with(World& world, net::Identity::Via via, const Credential& credential) {
  const auto peer = world.messenger->add({.via = via});
  world.messenger->deliver(peer, list_request(world, credential));
  world.run();
  const auto reply = world.reply(peer, 77);
  REQUIRE(reply);
  return static_cast<Code>(reply->error().code());
}

}  // namespace

TEST_CASE("a session is its own user's: a credential that names it for another is refused") {
  World world;
  Client client(world, 1000);
  const auto later = world.clock.wall_seconds() + 100;
  CHECK(ask_with(world, net::Identity::Via::kIpc, {SessionId(client.session()), 1000, {1000}, later}) == Code::kOk);
  CHECK(ask_with(world, net::Identity::Via::kIpc, {SessionId(client.session()), 1001, {1001}, later}) ==
        Code::kPermission);
}

// LFSs hand a user's request on with a credential without a session. Two users who got hold of such ones would share
// one.
TEST_CASE("a credential that daemons mint for each other opens no session") {
  World world;
  const auto later = world.clock.wall_seconds() + 100;
  CHECK(ask_with(world, net::Identity::Via::kIpc, {SessionId(0), 1000, {1000}, later}) == Code::kBadCapability);
}
