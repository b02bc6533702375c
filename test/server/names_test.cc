// Names, folders, permissions, lists.
#include "server/fixture.h"

#include <fmt/format.h>

namespace pif::server::testing {
namespace {

TEST_CASE("every bad path has its own error") {
  World world;
  Client client(world);
  REQUIRE(client.create("/file", true));
  const std::vector<std::tuple<std::string, Code, std::string>> bad = {
      {"", Code::kInvalid, "empty"},
      {"relative", Code::kInvalid, "absolute"},
      {"//x", Code::kInvalid, "empty name"},
      {"/a//b", Code::kInvalid, "empty name"},
      {"/.", Code::kInvalid, "'.'"},
      {"/..", Code::kInvalid, "'..'"},
      {"/a/../b", Code::kInvalid, "'..'"},
      {std::string("/a\0b", 4), Code::kInvalid, "NUL"},
      {"/" + std::string(256, 'n'), Code::kTooLarge, "255"},
      {"/" + std::string(10000, 'n'), Code::kTooLarge, "4096"},
      {"/nothing/x", Code::kNotFound, "/nothing"},
      {"/file/x", Code::kNotDirectory, "/file"},
      {"/", Code::kInvalid, "root"},
  };
  for (const auto& [path, code, text] : bad) {
    const auto made = client.create(path, true);
    CAPTURE(path);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == code);
    CHECK_THAT(made.error().text, Catch::Contains(text));
  }
  CHECK(client.create("/" + std::string(255, 'n'), true));
  CHECK(client.create("/\xc3\xa4\xf0\x9f\x98\x80", true));
  CHECK(client.list("/")->entries.size() == 3);
}

TEST_CASE("a path that ends with a slash means a folder") {
  World world;
  Client client(world);
  REQUIRE(client.create("/file", true));
  REQUIRE(client.mkdir("/folder/"));
  CHECK(client.stat("/folder/")->type() == proto::FOLDER);
  CHECK(client.list("/folder/"));
  CHECK(client.stat("/file/").error().code == Code::kNotDirectory);
  CHECK(client.list("/file/").error().code == Code::kNotDirectory);
  CHECK(client.create("/file/", true).error().code == Code::kNotDirectory);
  CHECK(client.create("/new/", true).error().code == Code::kNotDirectory);
  CHECK(client.remove("/file/") == Code::kNotDirectory);
  CHECK(client.rename("/file/", "/new").error().code == Code::kNotDirectory);
  CHECK(client.rename("/file", "/new/").error().code == Code::kNotDirectory);
  CHECK(client.rename("/folder", "/file/").error().code == Code::kNotDirectory);
  CHECK(client.rename("/folder/", "/new/"));
  CHECK(client.remove("/new/") == Code::kOk);
  CHECK(client.list("/")->entries.size() == 1);
}

TEST_CASE("stat says of a new file what was asked for") {
  World world;
  Client client(world, 500, {500, 7});
  auto request = Client::create_request("/f", true, 3);
  (*request.mutable_create()->mutable_named())["header"] = std::string("\x01\x00\x02", 3);
  REQUIRE(client.ask(request));
  const auto info = client.stat("/f");
  REQUIRE(info);
  CHECK(info->name() == "f");
  CHECK(info->type() == proto::FILE_ENTRY);
  CHECK(info->attributes().owner() == 500);
  CHECK(info->attributes().mode() == 0644);
  CHECK(info->attributes().named().at("header") == std::string("\x01\x00\x02", 3));
  CHECK(info->format().record_length() == 100);
  CHECK(info->layout().nodes_size() == 3);
  CHECK(info->file_length().records() == 0);
  CHECK(client.stat("/")->type() == proto::FOLDER);
  CHECK(client.stat("/")->name() == "/");
}

TEST_CASE("a stat of many paths answers each, in the order asked") {
  World world;
  Client client(world);
  REQUIRE(client.create("/b", true));
  REQUIRE(client.create("/a", true));
  Envelope request;
  for (const char* path : {"/b", "/missing", "/a", ""}) request.mutable_stat()->add_paths(path);
  const auto reply = client.ask(request);
  REQUIRE(reply);
  const auto all = Client::results_of(*reply);
  REQUIRE(all);
  const auto& results = all->results();
  REQUIRE(results.size() == 4);
  CHECK(results[0].entry().name() == "b");
  CHECK(results[1].error().code() == static_cast<std::uint32_t>(Code::kNotFound));
  CHECK_FALSE(results[1].has_entry());
  CHECK(results[2].entry().name() == "a");
  CHECK(results[3].error().code() == static_cast<std::uint32_t>(Code::kInvalid));
}

TEST_CASE("make_folder with parents makes all that is missing, and is content with what is there") {
  World world;
  Client client(world);
  CHECK(client.mkdir("/a/b/c").error().code == Code::kNotFound);
  REQUIRE(client.mkdir("/a/b/c", true));
  REQUIRE(client.mkdir("/a/b/c", true));
  CHECK(client.mkdir("/a/b/c").error().code == Code::kExists);
  REQUIRE(client.create("/a/file", true));
  CHECK(client.mkdir("/a/file/x", true).error().code == Code::kNotDirectory);
  CHECK(client.stat("/a/b/c")->type() == proto::FOLDER);
  require_sound(world);
}

TEST_CASE("a list of 100,000 entries comes in pages, in byte order, each once") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  REQUIRE(client.mkdir("/e"));
  REQUIRE(client.create("/e/other", true));
  for (int batch = 0; batch < 200; ++batch) {
    world.messenger->forget_replies();
    for (int i = 0; i < 500; ++i) client.post(Client::create_request(fmt::format("/d/f{:06}", batch * 500 + i), true));
    world.run();
    REQUIRE(world.messenger->sent.size() >= 500);
  }
  std::string last;
  int count = 0, pages = 0;
  for (bool more = true; more; ++pages) {
    const auto page = client.list("/d", last, 5000);
    REQUIRE(page);
    CHECK(page->bytes <= (64u << 10));
    for (const auto& entry : page->entries) {
      REQUIRE(entry.name() == fmt::format("f{:06}", count));
      ++count;
      last = entry.name();
    }
    more = page->more;
  }
  CHECK(count == 100'000);
  CHECK(pages > 50);
  const auto names = client.list("/d", "f099998", 10, true);
  REQUIRE(names);
  REQUIRE(names->entries.size() == 1);
  CHECK(names->entries[0].name() == "f099999");
  CHECK(names->entries[0].type() == proto::FILE_ENTRY);
  CHECK_FALSE(names->entries[0].has_attributes());
  CHECK(client.list("/d", "", 1)->more);
}

TEST_CASE("owner, group and others get what the mode gives them") {
  World world;
  Client owner(world);
  REQUIRE(owner.mkdir("/open", false, 0777));
  Client anna(world, 1001, {1001, 50}), bert(world, 1002, {1002, 50}), carl(world, 1003);
  REQUIRE(anna.mkdir("/open/shared", false, 0750));
  Envelope to_group;
  to_group.mutable_set_attributes()->set_path("/open/shared");
  to_group.mutable_set_attributes()->set_group(50);
  REQUIRE(anna.ask(to_group));
  REQUIRE(anna.create("/open/shared/f", true));

  CHECK(bert.exists("/open/shared/f"));
  CHECK(bert.list("/open/shared"));
  CHECK(bert.create("/open/shared/g", true).error().code == Code::kPermission);
  CHECK(bert.remove("/open/shared/f") == Code::kPermission);
  CHECK(carl.stat("/open/shared/f").error().code == Code::kPermission);
  CHECK(carl.stat("/open/shared/missing").error().code == Code::kPermission);
  CHECK(carl.list("/open/shared").error().code == Code::kPermission);
  CHECK(carl.create("/top", true).error().code == Code::kPermission);
  CHECK(carl.open("/open/shared/f").error().code == Code::kPermission);
  CHECK(bert.open("/open/shared/f"));
  CHECK(bert.open("/open/shared/f", kMayRead | kMayWrite).error().code == Code::kPermission);
  CHECK(anna.open("/open/shared/f", kMayRead | kMayWrite));
  CHECK(owner.remove("/open/shared/f") == Code::kOk);
}

TEST_CASE("only the owner changes a mode, and only root or the cluster's owner gives a file away") {
  World world;
  Client owner(world);
  REQUIRE(owner.mkdir("/open", false, 0777));
  Client anna(world, 1001), bert(world, 1002), root(world, 0);
  REQUIRE(anna.create("/open/f", true));
  Envelope mode;
  mode.mutable_set_attributes()->set_path("/open/f");
  mode.mutable_set_attributes()->set_mode(0600);
  CHECK(bert.ask(mode).error().code == Code::kPermission);
  CHECK(anna.ask(mode));
  CHECK(bert.open("/open/f").error().code == Code::kPermission);
  Envelope away;
  away.mutable_set_attributes()->set_path("/open/f");
  away.mutable_set_attributes()->set_owner(1002);
  CHECK(anna.ask(away).error().code == Code::kPermission);
  CHECK(root.ask(away));
  CHECK(bert.open("/open/f"));
}

TEST_CASE("a changed folder mode counts at once, for those who have been there too") {
  World world;
  Client owner(world);
  Client anna(world, 1001);
  REQUIRE(owner.mkdir("/d", false, 0755));
  REQUIRE(owner.create("/d/f", true));
  CHECK(anna.exists("/d/f"));
  Envelope mode;
  mode.mutable_set_attributes()->set_path("/d");
  mode.mutable_set_attributes()->set_mode(0700);
  REQUIRE(owner.ask(mode));
  CHECK(anna.stat("/d/f").error().code == Code::kPermission);
}

TEST_CASE("named attributes are set, removed by an empty value, and bounded") {
  World world;
  Client client(world);
  REQUIRE(client.create("/f", true));
  Envelope set;
  set.mutable_set_attributes()->set_path("/f");
  (*set.mutable_set_attributes()->mutable_named())["a"] = "1";
  (*set.mutable_set_attributes()->mutable_named())["b"] = "2";
  REQUIRE(client.ask(set));
  (*set.mutable_set_attributes()->mutable_named())["a"] = "";
  REQUIRE(client.ask(set));
  CHECK(client.stat("/f")->attributes().named().size() == 1);
  (*set.mutable_set_attributes()->mutable_named())["c"] = std::string(70'000, 'c');
  CHECK(client.ask(set).error().code == Code::kTooLarge);
  CHECK(client.stat("/f")->attributes().named().at("b") == "2");
}

TEST_CASE("rename moves a file, and replaces another in the same step") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d"));
  const std::uint64_t a = client.put("/a", 1);
  const std::uint64_t b = client.put("/d/b", 2);
  CHECK(client.rename("/a", "/d/b", true).error().code == Code::kExists);
  REQUIRE(client.rename("/a", "/d/b"));
  CHECK_FALSE(client.exists("/a"));
  CHECK(client.stat("/d/b")->id() == a);
  CHECK(client.stat("/d/b")->file_length().records() == 1);
  const auto told = world.settles({1, 2, 3, 4});
  REQUIRE(told.size() == 4);
  bool removed = false;
  for (const auto& settle : told.at(1)) removed |= settle.removed_size() == 1 && settle.removed(0) == b;
  CHECK(removed);
  CHECK(client.rename("/d/b", "/d/b"));
  CHECK(client.exists("/d/b"));
  require_sound(world);
}

TEST_CASE("rename refuses what cannot be, and leaves both names as they were") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/d/sub", true));
  REQUIRE(client.mkdir("/empty"));
  REQUIRE(client.create("/f", true));
  CHECK(client.rename("/missing", "/x").error().code == Code::kNotFound);
  CHECK(client.rename("/d", "/d/sub/inside").error().code == Code::kInvalid);
  CHECK(client.rename("/d", "/d/inside").error().code == Code::kInvalid);
  CHECK(client.rename("/f", "/d").error().code == Code::kIsDirectory);
  CHECK(client.rename("/d", "/f").error().code == Code::kNotDirectory);
  CHECK(client.rename("/empty", "/d").error().code == Code::kNotEmpty);
  CHECK(client.rename("/", "/x").error().code == Code::kInvalid);
  require_sound(world);
  REQUIRE(client.rename("/d", "/empty"));
  CHECK(client.exists("/empty/sub"));
  CHECK_FALSE(client.exists("/d/sub"));
  require_sound(world);
}

TEST_CASE("a file in a renamed folder is found under the new path only, also by those who used the old one") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/a/b", true));
  REQUIRE(client.create("/a/b/f", true));
  REQUIRE(client.stat("/a/b/f"));
  REQUIRE(client.rename("/a", "/c"));
  CHECK(client.stat("/a/b/f").error().code == Code::kNotFound);
  CHECK(client.exists("/c/b/f"));
  REQUIRE(client.mkdir("/a/b", true));
  CHECK_FALSE(client.exists("/a/b/f"));
}

TEST_CASE("remove takes files and empty folders, and says for each path what became of it") {
  World world;
  Client client(world);
  REQUIRE(client.mkdir("/full"));
  REQUIRE(client.mkdir("/empty"));
  REQUIRE(client.create("/full/f", true));
  const auto reply = client.ask(Client::remove_request({"/full", "/empty", "/missing", "/full/f"}));
  REQUIRE(reply);
  const auto& errors = reply->remove_reply().errors();
  REQUIRE(errors.size() == 4);
  CHECK(errors[0].code() == static_cast<std::uint32_t>(Code::kNotEmpty));
  CHECK(errors[1].code() == 0);
  CHECK(errors[2].code() == static_cast<std::uint32_t>(Code::kNotFound));
  CHECK(errors[3].code() == 0);
  CHECK(reply->remove_reply().removed() == 2);
  CHECK(client.remove("/full") == Code::kOk);
  require_sound(world);
}

TEST_CASE("a recursive remove takes a tree in several turns, and others are served meanwhile") {
  World world;
  Client client(world), other(world);
  REQUIRE(client.mkdir("/t/a/b", true));
  REQUIRE(client.create("/keep", true));
  for (int i = 0; i < 3000; ++i)
    client.post(Client::create_request(fmt::format("/t/{}f{}", i % 2 ? "a/b/" : "", i), true));
  world.run();
  world.messenger->forget_replies();
  const std::uint64_t id = client.post(Client::remove_request({"/t", "/missing"}, true));
  Envelope stat;
  stat.mutable_stat()->add_paths("/keep");
  other.post(stat);
  world.run();
  CHECK(world.messenger->sent.front().second.has_stat_reply());
  const auto reply = client.answer(id);
  REQUIRE(reply);
  CHECK(reply->remove_reply().removed() == 3003);
  REQUIRE(reply->remove_reply().errors_size() == 2);
  CHECK(reply->remove_reply().errors(0).code() == 0);
  CHECK(reply->remove_reply().errors(1).code() == static_cast<std::uint32_t>(Code::kNotFound));
  CHECK_FALSE(client.exists("/t"));
  CHECK(client.exists("/keep"));
  require_sound(world);
}

TEST_CASE("a recursive remove stops at a folder that is not the requester's") {
  World world;
  Client owner(world), anna(world, 1001);
  REQUIRE(owner.mkdir("/open", false, 0777));
  REQUIRE(anna.mkdir("/open/anna"));
  REQUIRE(owner.mkdir("/open/anna/root", false, 0700));
  REQUIRE(owner.create("/open/anna/root/f", true));
  CHECK(anna.remove("/open/anna", true) == Code::kPermission);
  CHECK(owner.exists("/open/anna/root/f"));
  CHECK(owner.remove("/open/anna", true) == Code::kOk);
  require_sound(world);
}

// A path of so many names.
std::string deep(int names) {
  std::string path;
  for (int i = 0; i < names; ++i) path += "/x";
  return path;
}

TEST_CASE("a path costs a row for each name that is there, and those below the first that is missing nothing") {
  World world;
  Client owner(world), anna(world, 1001);
  const auto asks = [&](unsigned rows_max, Code expected, const auto& ask) {
    const unsigned before = world.store->gets;
    const auto reply = ask();
    const unsigned rows = world.store->gets - before;
    CHECK((reply ? Code::kOk : reply.error().code) == expected);
    REQUIRE(rows <= rows_max);
  };
  REQUIRE(owner.mkdir("/a/b/c", true));
  asks(10, Code::kNotFound, [&] { return anna.stat("/a/b/c" + deep(200)); });
  asks(10, Code::kPermission, [&] { return anna.mkdir("/a/b/c" + deep(200), true); });
  asks(20, Code::kOk, [&] { return owner.mkdir(deep(200), true); });
  asks(220, Code::kOk, [&] { return anna.list(deep(200)); });
  // The longest there are.
  asks(10, Code::kNotFound, [&] { return anna.stat("/y" + deep(2046)); });
  asks(20, Code::kOk, [&] { return owner.mkdir("/y" + deep(2046), true); });
  asks(2100, Code::kOk, [&] { return anna.stat("/y" + deep(2046)); });
  asks(10, Code::kNotFound, [&] { return anna.stat("/y" + deep(2045) + "/z"); });
  require_sound(world);
}

TEST_CASE("a missing name is not told to who may not search the folder it is missing in, however deep the path") {
  World world;
  Client owner(world), anna(world, 1001);
  REQUIRE(owner.mkdir("/open"));
  REQUIRE(owner.mkdir("/open/shut", false, 0700));
  REQUIRE(owner.create("/open/shut/file", true));
  for (const std::string path : {"/open/shut/none/x", "/open/shut/file/x", "/open/shut/none"}) {
    const auto refused = anna.stat(path);
    CHECK(refused.error().code == Code::kPermission);
    CHECK_THAT(refused.error().text, Catch::EndsWith("/open/shut"));
    CHECK(anna.mkdir(path, true).error().code == Code::kPermission);
  }
  CHECK_THAT(anna.stat("/open/none/x/y").error().text, Catch::EndsWith("/open/none"));
  CHECK(owner.stat("/open/shut/file/x").error().code == Code::kNotDirectory);
  CHECK(owner.mkdir("/open/shut/file/x/y", true).error().code == Code::kNotDirectory);
}

}  // namespace
}  // namespace pif::server::testing
