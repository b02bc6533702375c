// Recursive removes that go on over many turns, while others change the same tree.
#include <set>

#include "server/fixture.h"

namespace pif::server::testing {
namespace {

// Ends a turn: what is posted later belongs to the next.
void post_heavy(Client& client) {
  Envelope stat;
  for (int i = 0; i < 4096; ++i) stat.mutable_stat()->add_paths("/x");
  client.post(stat);
}

void fill(World& world, Client& client, const std::string& folder, int files) {
  for (int i = 0; i < files; ++i) client.post(Client::create_request(folder + "/f" + std::to_string(i), true));
  world.run();
  world.messenger->forget_replies();
}

Code removed(Client& client, std::uint64_t id) {
  const auto answer = client.answer(id);
  return answer ? static_cast<Code>(answer->remove_reply().errors(0).code()) : answer.error().code;
}

// More than one step of a removal takes away.
constexpr int kMany = 1500;

TEST_CASE("a folder that gets the name of one that is being removed, and was moved away, keeps what is in it") {
  World world;
  Client client(world), other(world);
  REQUIRE(client.mkdir("/t"));
  fill(world, client, "/t", kMany);
  const auto removal = client.post(Client::remove_request({"/t"}, true));
  post_heavy(client);
  other.post(Client::rename_request("/t", "/moved"));
  other.post(Client::folder_request("/t"));
  other.post(Client::create_request("/t/new", true));
  world.run();
  CHECK(removed(client, removal) == Code::kNotFound);
  CHECK(other.exists("/t/new"));
  CHECK(other.exists("/moved"));
  require_sound(world);
  CHECK(other.remove("/moved", true) == Code::kOk);
  CHECK(other.remove("/t", true) == Code::kOk);
  require_sound(world);
}

TEST_CASE("a folder that is moved out of a tree while the tree is removed is left, and the tree goes") {
  World world;
  Client client(world), other(world);
  REQUIRE(client.mkdir("/t/a/b", true));
  fill(world, client, "/t/a/b", kMany);
  const auto removal = client.post(Client::remove_request({"/t"}, true));
  post_heavy(client);
  other.post(Client::rename_request("/t/a", "/saved"));
  world.run();
  CHECK(removed(client, removal) == Code::kOk);
  CHECK_FALSE(other.exists("/t"));
  CHECK(other.list("/saved/b")->entries.size() > 0);
  require_sound(world);
}

TEST_CASE("a folder that two remove at once goes once, and one made of the same name is not theirs") {
  World world;
  Client first(world), second(world), third(world);
  REQUIRE(first.mkdir("/t/a", true));
  fill(world, first, "/t/a", kMany);
  fill(world, first, "/t", 3);
  const auto one = first.post(Client::remove_request({"/t"}, true));
  const auto two = second.post(Client::remove_request({"/t"}, true));
  for (int turn = 0; turn < 3; ++turn) {  // the second ends one of the removals, and in the third there is a new /t
    post_heavy(third);
    third.post(Client::folder_request("/t/new", true));
  }
  world.run();
  CHECK(std::set<Code>{removed(first, one), removed(second, two)} == std::set<Code>{Code::kOk, Code::kNotFound});
  CHECK(third.exists("/t/new"));
  CHECK(third.nodes().folders() == 3);
  CHECK(third.nodes().files() == 0);
  require_sound(world);
}

}  // namespace
}  // namespace pif::server::testing
