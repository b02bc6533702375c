// Modes of twelve bits, whose what is made becomes, and the directory's format that has them.
#include "pif/kv/value.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

constexpr kv::Table kMetaTable = 4;

std::string version_of(World& world) {
  const auto txn = world.store->read();
  REQUIRE(txn);
  const auto value = (*txn)->get(kMetaTable, "version");
  REQUIRE((value && *value));
  const auto payload = kv::open_value(**value, "meta");
  REQUIRE(payload);
  return std::string(*payload);
}
Code chmod(Client& client, const std::string& path, std::uint32_t mode) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  request.mutable_set_attributes()->set_mode(mode);
  const auto reply = client.ask(request);
  return reply ? Code::kOk : reply.error().code;
}
std::uint32_t mode_of(Client& client, const std::string& path) { return client.stat(path)->attributes().mode(); }

}  // namespace

TEST_CASE("a directory is of format 3 from the first mode above 0777 on, and the server opens it again") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d", false, 0777));
  client.put("/d/f");
  CHECK(version_of(world) == kv::key_u32(2));
  CHECK(chmod(client, "/d", 01777) == Code::kOk);
  CHECK(version_of(world) == kv::key_u32(3));
  world.start();
  Client again(world);
  CHECK(mode_of(again, "/d") == 01777);
  CHECK(chmod(again, "/d", 0777) == Code::kOk);
  CHECK(version_of(world) == kv::key_u32(3));
  require_sound(world);
}

TEST_CASE("a transaction that fails leaves the format as it was, and the next one sets it") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  world.store->commits_to_fail = 1;
  CHECK(chmod(client, "/d", 01777) != Code::kOk);
  CHECK(version_of(world) == kv::key_u32(2));
  CHECK(chmod(client, "/d", 01777) == Code::kOk);
  CHECK(version_of(world) == kv::key_u32(3));
}

TEST_CASE("a mode above 0777 of a file being created is of format 3, too") {
  World world;
  Client client(world);
  Envelope request = Client::create_request("/f");
  request.mutable_create()->set_mode(04755);
  const auto made = client.ask(request);
  REQUIRE(made);
  CHECK(version_of(world) == kv::key_u32(3));
  REQUIRE(client.ask(Client::commit_request(made->create_reply().file())));
  CHECK(mode_of(client, "/f") == 04755);
}

TEST_CASE("in a sticky folder names are taken away by their owner, the folder's, or root") {
  World world;
  Client root(world, 0), owner(world, 1001), other(world, 1002);
  REQUIRE(root.mkdir("/tmp", false, 01777));
  owner.put("/tmp/f");
  other.put("/tmp/mine");
  CHECK(other.remove("/tmp/f") == Code::kPermission);
  CHECK(other.rename("/tmp/f", "/tmp/g").error().code == Code::kPermission);
  CHECK(other.rename("/tmp/mine", "/tmp/f").error().code == Code::kPermission);
  CHECK(other.create("/tmp/f").error().code == Code::kPermission);
  CHECK(other.create("/tmp/f", true).error().code == Code::kPermission);
  const auto begun = other.create("/tmp/later");
  REQUIRE(begun);
  owner.put("/tmp/later");
  CHECK(other.ask(Client::commit_request(begun->file())).error().code == Code::kPermission);
  CHECK(owner.rename("/tmp/f", "/tmp/g"));
  CHECK(owner.remove("/tmp/g") == Code::kOk);
  CHECK(root.remove("/tmp/later") == Code::kOk);

  REQUIRE(owner.mkdir("/tmp/dir", false, 01777));
  other.put("/tmp/dir/theirs");
  CHECK(other.remove("/tmp/dir/theirs") == Code::kOk);
  other.put("/tmp/dir/theirs");
  CHECK(owner.remove("/tmp/dir", true) == Code::kOk);  // the folder is his
  REQUIRE(root.mkdir("/tmp/shared", false, 01777));
  owner.put("/tmp/shared/f");
  CHECK(other.remove("/tmp/shared", true) == Code::kPermission);
  CHECK(root.exists("/tmp/shared/f"));
}

TEST_CASE("a recursive removal leaves what is another's in a sticky folder") {
  World world;
  Client root(world, 0), owner(world, 1001), other(world, 1002);
  REQUIRE(root.mkdir("/d", false, 0777));
  REQUIRE(root.mkdir("/d/sticky", false, 01777));
  owner.put("/d/sticky/f");
  CHECK(other.remove("/d", true) == Code::kPermission);
  CHECK(root.exists("/d/sticky/f"));
}

TEST_CASE("a set-group-id folder gives its group, and folders in it the bit") {
  World world;
  Client root(world, 0), member(world, 1001, {1001, 77}), stranger(world, 1002);
  REQUIRE(root.mkdir("/d", false, 0777));
  Envelope chown;
  chown.mutable_set_attributes()->set_path("/d");
  chown.mutable_set_attributes()->set_group(77);
  REQUIRE(root.ask(chown));
  REQUIRE(chmod(root, "/d", 02777) == Code::kOk);
  member.put("/d/f");
  CHECK(member.stat("/d/f")->attributes().group() == 77);
  CHECK(mode_of(member, "/d/f") == 0644);
  REQUIRE(stranger.mkdir("/d/a/b", true));
  CHECK(stranger.stat("/d/a/b")->attributes().group() == 77);
  CHECK(mode_of(stranger, "/d/a") == 02755);
  CHECK(mode_of(stranger, "/d/a/b") == 02755);
  stranger.put("/d/g");
  CHECK(chmod(stranger, "/d/g", 02755) == Code::kOk);
  CHECK(mode_of(stranger, "/d/g") == 0755);  // not in that group
  CHECK(chmod(member, "/d/f", 02755) == Code::kOk);
  CHECK(mode_of(member, "/d/f") == 02755);
}

TEST_CASE("whoever may write a file takes its owner's rights from it, and so does another owner") {
  World world;
  Client root(world, 0), owner(world, 1001), other(world, 1002);
  REQUIRE(root.mkdir("/d", false, 0777));
  const std::uint64_t file = owner.put("/d/f");
  const auto set = [&] {
    REQUIRE(chmod(owner, "/d/f", 06777) == Code::kOk);
    CHECK(mode_of(owner, "/d/f") == 06777);
  };
  set();
  REQUIRE(other.open("/d/f"));
  REQUIRE(root.open("/d/f", kMayRead | kMayWrite));
  CHECK(mode_of(owner, "/d/f") == 06777);
  REQUIRE(other.open("/d/f", kMayRead | kMayWrite));
  CHECK(mode_of(owner, "/d/f") == 0777);
  set();
  Envelope create;
  create.mutable_create()->set_instead_of(file);
  REQUIRE(other.ask(create));
  CHECK(mode_of(owner, "/d/f") == 0777);
  set();
  Envelope chown;
  chown.mutable_set_attributes()->set_path("/d/f");
  chown.mutable_set_attributes()->set_owner(1002);
  REQUIRE(root.ask(chown));
  CHECK(mode_of(owner, "/d/f") == 0777);
}

TEST_CASE("files and folders for others are made by root alone") {
  World world;
  Client root(world, 0), user(world, 1001, {1001, 77});
  REQUIRE(root.mkdir("/d", false, 0777));
  Envelope file = Client::create_request("/d/f", true);
  file.mutable_create()->set_owner(1002);
  CHECK(user.ask(file).error().code == Code::kPermission);
  file.mutable_create()->set_group(55);
  REQUIRE(root.ask(file));
  CHECK(root.stat("/d/f")->attributes().owner() == 1002);
  CHECK(root.stat("/d/f")->attributes().group() == 55);
  Envelope own = Client::create_request("/d/own", true);
  own.mutable_create()->set_owner(1001);
  own.mutable_create()->set_group(77);
  REQUIRE(user.ask(own));
  CHECK(user.stat("/d/own")->attributes().group() == 77);
  Envelope folder = Client::folder_request("/d/x");
  folder.mutable_make_folder()->set_owner(1002);
  CHECK(user.ask(folder).error().code == Code::kPermission);
  REQUIRE(root.ask(folder));
  CHECK(root.stat("/d/x")->attributes().owner() == 1002);
  Envelope now = Client::create_request("/d/now");
  now.mutable_create()->set_now(true);
  now.mutable_create()->set_owner(1002);
  const auto made = root.ask(now);
  REQUIRE(made);
  REQUIRE(root.ask(Client::commit_request(made->create_reply().file())));
  CHECK(root.stat("/d/now")->attributes().owner() == 1002);
}

}  // namespace pif::server::testing
