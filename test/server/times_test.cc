// When files were changed, as writers say it.
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Result<Envelope> set_modified(Client& client, const std::string& path, std::int64_t modified, std::int64_t at) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  request.mutable_set_attributes()->set_modified(modified);
  request.mutable_set_attributes()->set_at(at);
  return client.ask(request);
}
void say_written(Client& client, std::uint64_t file, std::int64_t at) {
  Envelope request;
  request.mutable_close()->set_length_file(file);
  request.mutable_close()->set_wrote(at);
  REQUIRE(client.ask(request));
}
proto::Attributes attributes(Client& client, const std::string& path) { return client.stat(path)->attributes(); }

}  // namespace

TEST_CASE("a writer's word moves the time of modification, but not one that was set after the write") {
  World world;
  Client client(world), reader(world, 1001);
  const std::uint64_t file = client.put("/f");
  REQUIRE(client.open("/f", kMayRead | kMayWrite));
  const std::int64_t before = attributes(client, "/f").modified();
  world.advance(5);
  say_written(client, file, world.clock.wall_ns());
  CHECK(attributes(client, "/f").modified() == before + 5 * kSecond);

  const std::int64_t written = world.clock.wall_ns();
  world.advance(2);
  REQUIRE(set_modified(client, "/f", 123, world.clock.wall_ns()));
  CHECK(attributes(client, "/f").modified() == 123);
  world.advance(2);
  say_written(client, file, written);
  CHECK(attributes(client, "/f").modified() == 123);
  CHECK(attributes(client, "/f").changed() == world.clock.wall_ns());
  say_written(client, file, world.clock.wall_ns());
  CHECK(attributes(client, "/f").modified() == world.clock.wall_ns());
  world.advance(1);
  REQUIRE(reader.open("/f"));
  say_written(reader, file, world.clock.wall_ns());  // has it open for reading
  CHECK(attributes(client, "/f").modified() == world.clock.wall_ns() - kSecond);
  CHECK(set_modified(reader, "/f", 1, 1).error().code == Code::kPermission);
}

TEST_CASE("a file that takes another one's place keeps a time that was set after its last write") {
  World world;
  Client client(world);
  const auto rewrite = [&](const std::string& path, std::int64_t written) {
    Envelope create;
    create.mutable_create()->set_instead_of(client.stat(path)->id());
    const auto made = client.ask(create);
    REQUIRE(made);
    Envelope commit = Client::commit_request(made->create_reply().file(), 3);
    commit.mutable_commit()->set_written(written);
    REQUIRE(client.ask(commit));
  };
  client.put("/f");
  const std::int64_t start = world.clock.wall_ns();
  REQUIRE(set_modified(client, "/f", 77, start + 10));
  world.advance(1);
  rewrite("/f", start + 9);
  CHECK(attributes(client, "/f").modified() == 77);
  rewrite("/f", 0);  // not a byte was written
  CHECK(attributes(client, "/f").modified() == 77);
  rewrite("/f", start + 11);
  CHECK(attributes(client, "/f").modified() == world.clock.wall_ns());
  world.advance(1);
  rewrite("/f", start);  // nobody's word counts any more
  CHECK(attributes(client, "/f").modified() == world.clock.wall_ns());
}

TEST_CASE("a session that ends with a file open for writing counts as having written") {
  World world;
  Client client(world);
  client.put("/read");
  client.put("/written");
  client.put("/closed");
  const std::int64_t before = attributes(client, "/read").modified();
  Client dying(world, 500);
  REQUIRE(dying.open("/read"));
  REQUIRE(dying.open("/written", kMayRead | kMayWrite));
  const auto closed = dying.open("/closed", kMayRead | kMayWrite);
  dying.close_file(closed->entry().id());
  world.advance(3);
  dying.close();
  world.advance(1);
  CHECK(attributes(client, "/read").modified() == before);
  CHECK(attributes(client, "/closed").modified() == before);
  CHECK(attributes(client, "/written").modified() > before);
}

TEST_CASE("a folder's times move when names in it come, go or are replaced") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/a/b", true));
  REQUIRE(client.mkdir("/c"));
  std::map<std::string, std::int64_t> before;
  const auto moved = [&] {
    std::string all;
    for (const std::string path : {"/", "/a", "/a/b", "/c"}) {
      const std::int64_t now = attributes(client, path).modified();
      if (std::exchange(before[path], now) != now) all += path + " ";
      CHECK(attributes(client, path).changed() >= now);
    }
    world.live(1);
    return all;
  };
  moved();
  client.put("/a/f");
  CHECK(moved() == "/a ");
  client.put("/a/f");
  CHECK(moved() == "/a ");
  Envelope version;
  version.mutable_create()->set_instead_of(client.stat("/a/f")->id());
  const auto made = client.ask(version);
  REQUIRE(made);
  REQUIRE(client.ask(Client::commit_request(made->create_reply().file())));
  REQUIRE(client.create("/a/b/pending"));
  CHECK(moved().empty());
  REQUIRE(client.rename("/a/f", "/a/b/f"));
  CHECK(moved() == "/a /a/b ");
  REQUIRE(client.mkdir("/a/d"));
  CHECK(moved() == "/a ");
  REQUIRE(client.rename("/a/d", "/d"));
  CHECK(moved() == "/ /a ");
  REQUIRE(client.remove("/d") == Code::kOk);
  CHECK(moved() == "/ ");
  REQUIRE(client.remove("/a/b/f") == Code::kOk);
  CHECK(moved() == "/a/b ");
  REQUIRE(set_modified(client, "/a", 5, world.clock.wall_ns()));
  CHECK(attributes(client, "/a").modified() == 5);
  moved();
  REQUIRE(client.remove("/a", true) == Code::kOk);
  CHECK(client.stat("/").has_value());
  require_sound(world);
}

}  // namespace pif::server::testing
