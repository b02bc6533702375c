// Leases: who gets a new capability for what he has open or is creating, and what becomes of a length that he tells.
#include <fmt/format.h>

#include "pif/base/capability.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

Code code_of(const Result<Envelope>& reply) { return reply ? Code::kOk : reply.error().code; }

std::uint32_t rights_of(World& world, const std::string& capability) {
  if (capability.empty()) return 0;
  const auto verified = verify_capability(world.key, capability, world.clock.wall_seconds());
  REQUIRE(verified);
  return verified->rights;
}

Code set_mode(Client& client, const std::string& path, std::uint32_t mode) {
  Envelope request;
  request.mutable_set_attributes()->set_path(path);
  request.mutable_set_attributes()->set_mode(mode);
  return code_of(client.ask(request));
}

Code tell_length(Client& client, std::uint64_t file, std::uint64_t records, std::uint64_t bytes) {
  Envelope request;
  request.mutable_close()->set_length_file(file);
  request.mutable_close()->mutable_file_length()->set_records(records);
  request.mutable_close()->mutable_file_length()->set_bytes(bytes);
  return code_of(client.ask(request));
}

}  // namespace

TEST_CASE("a capability for a file that is being created is renewed for its owner's programs only") {
  World world;
  Client owner(world), anna(world, 1001), annas_other(world, 1001), bert(world, 1002);
  REQUIRE(owner.mkdir("/d", false, 0777));
  const auto made = anna.create("/d/p");
  REQUIRE(made);
  CHECK(rights_of(world, anna.renew(made->file())) == (kMayCreate | kMayRead));
  CHECK(rights_of(world, annas_other.renew(made->file())) == (kMayCreate | kMayRead));
  CHECK(bert.renew(made->file()).empty());
  CHECK(bert.renew(made->file() + 1000).empty());
}

TEST_CASE("a renewal gives what its user may still do, and what nobody keeps him from") {
  World world;
  Client owner(world), reader(world, 1001), writer(world);
  const auto file = owner.put("/f");
  REQUIRE(reader.open("/f", kMayRead));
  REQUIRE(writer.open("/f", kMayRead | kMayWrite));
  CHECK(rights_of(world, reader.renew(file)) == kMayRead);
  CHECK(rights_of(world, writer.renew(file)) == (kMayRead | kMayWrite));
  REQUIRE(set_mode(owner, "/f", 0600) == Code::kOk);
  CHECK(reader.renew(file).empty());
  REQUIRE(set_mode(owner, "/f", 0644) == Code::kOk);
  world.start();  // forgets who had what open
  world.heartbeats();
  Client tool(world, 1003);
  REQUIRE(tool.open("/f", kMayRead, true));
  writer.connect();
  CHECK(rights_of(world, writer.renew(file)) == kMayRead);
  tool.close_file(file);
  CHECK(rights_of(world, writer.renew(file)) == kMayRead);  // that is what he has open now
  writer.close_file(file);
  REQUIRE(writer.open("/f", kMayRead | kMayWrite));
}

TEST_CASE("an opening and a closing whose answers were lost count once, though they are sent again") {
  World world;
  Client tool(world, 1001), writer(world);
  const auto file = writer.put("/f");
  constexpr std::uint64_t kFirst = 100;
  Envelope opening, closing;
  opening.mutable_open()->set_path("/f");
  opening.mutable_open()->set_rights(kMayRead);
  opening.mutable_open()->set_hold(true);
  closing.mutable_close()->add_files(file);
  for (const std::uint64_t id : {kFirst, kFirst, kFirst + 1, kFirst + 1}) REQUIRE(tool.ask(opening, id));
  for (int i = 0; i < 2; ++i) REQUIRE(tool.ask(closing, kFirst + 2));
  const auto refused = writer.open("/f", kMayWrite);  // it has it open once more
  REQUIRE(!refused);
  CHECK(refused.error().code == Code::kBusy);
  REQUIRE(tool.ask(closing, kFirst + 3));
  CHECK(writer.open("/f", kMayWrite));
}

TEST_CASE("what a tool holds is held when the server was killed and started again") {
  World world;
  Client tool(world, 1001), writer(world);
  const auto file = writer.put("/f");
  REQUIRE(tool.open("/f", kMayRead, true));
  REQUIRE(tool.open("/f", kMayRead));
  world.start();
  world.heartbeats();
  writer.connect();
  const auto refused = writer.open("/f", kMayWrite);  // the tool has not come back yet
  REQUIRE(refused.error().code == Code::kBusy);
  CHECK_THAT(refused.error().text, Catch::Contains("held against writing by prog1001 (uid 1001)"));
  tool.connect();
  world.live(100);
  CHECK(writer.open("/f", kMayWrite).error().code == Code::kBusy);
  CHECK(rights_of(world, tool.renew(file, true)) == kMayRead);
  tool.close_file(file);
  CHECK(writer.open("/f", kMayWrite).error().code == Code::kBusy);  // it had opened it twice
  tool.close_file(file);
  CHECK(writer.open("/f", kMayWrite));
  require_sound(world);
}

TEST_CASE("what a tool held that does not come back is free half a minute after the server's start, and stays so") {
  World world;
  Client tool(world, 1001), writer(world);
  const auto file = writer.put("/f");
  REQUIRE(tool.open("/f", kMayRead, true));
  world.start();
  world.heartbeats();
  writer.connect();
  world.live(25);
  CHECK(writer.open("/f", kMayWrite).error().code == Code::kBusy);
  world.live(10);
  REQUIRE(writer.open("/f", kMayWrite));
  tool.connect();
  CHECK(tool.renew(file, true).empty());  // others may have written to it: it must not go on as if they had not
  CHECK(rights_of(world, tool.renew(file)) == kMayRead);
  world.start();
  world.heartbeats();
  writer.connect();
  CHECK(writer.open("/f", kMayWrite));
}

TEST_CASE("a hold that has ended, by a close or with its program, is not there again after a restart") {
  World world;
  Client closer(world, 1001), goer(world, 1002), again(world, 1003), writer(world);
  const auto f = writer.put("/f"), g = writer.put("/g");
  writer.put("/h");
  REQUIRE(closer.open("/f", kMayRead, true));
  REQUIRE(goer.open("/h", kMayRead, true));
  REQUIRE(again.open("/g", kMayRead, true));
  closer.close_file(f);
  goer.close();
  again.close_file(g);
  REQUIRE(again.open("/g", kMayRead, true));
  world.live(2);
  world.start();
  world.heartbeats();
  writer.connect();
  CHECK(writer.open("/f", kMayWrite));
  CHECK(writer.open("/h", kMayWrite));
  CHECK(writer.open("/g", kMayWrite).error().code == Code::kBusy);
}

TEST_CASE("a hold that could not be made durable is refused, and keeps nobody out") {
  World world;
  Client tool(world, 1001), writer(world);
  writer.put("/f");
  world.store->commits_to_fail = 1;
  CHECK(tool.open("/f", kMayRead, true).error().code == Code::kIo);
  CHECK(writer.open("/f", kMayWrite));
}

TEST_CASE("who keeps others out but has gone since is nobody to name, and his leases end with him") {
  World world;
  Client owner(world), tool(world, 1001), second(world, 1002);
  owner.put("/f");
  owner.put("/g");
  REQUIRE(tool.open("/f", kMayRead, true));
  REQUIRE(second.open("/f", kMayRead, true));
  REQUIRE(tool.open("/g", kMayRead, true));
  CHECK(owner.open("/f", kMayWrite).error().code == Code::kBusy);
  tool.close();
  CHECK(owner.open("/g", kMayWrite));
  CHECK(owner.open("/f", kMayWrite).error().code == Code::kBusy);
  second.close();
  CHECK(owner.open("/f", kMayWrite));
}

TEST_CASE("of two leases on one file the older ends first, and of two opens of one program the last counts") {
  World world;
  Client owner(world), early(world, 1001), late(world, 1002);
  const auto file = owner.put("/f");
  REQUIRE(early.open("/f", kMayRead, true));
  world.live(300);
  REQUIRE(late.open("/f", kMayRead, true));
  world.live(400);  // early's has ended
  const auto refused = owner.open("/f", kMayWrite);
  REQUIRE(refused.error().code == Code::kBusy);
  CHECK_THAT(refused.error().text, Catch::Contains("prog1002"));
  REQUIRE(late.open("/f", kMayRead, true));
  late.close_file(file);
  CHECK(owner.open("/f", kMayWrite).error().code == Code::kBusy);
  late.close_file(file);
  CHECK(owner.open("/f", kMayWrite));
  late.close_file(file);  // once too often: nothing
}

TEST_CASE("a length counts from who may write, of a file that is there, and only if nothing shrinks") {
  World world;
  Client writer(world), other(world), reader(world, 1001);
  const auto file = writer.put("/f", 10);
  const auto records = [&] { return other.stat("/f")->file_length().records(); };
  CHECK(tell_length(writer, file, 50, 5000) == Code::kOk);  // has not opened it
  CHECK(records() == 10);
  REQUIRE(reader.open("/f"));
  CHECK(tell_length(reader, file, 50, 5000) == Code::kOk);
  CHECK(records() == 10);
  REQUIRE(writer.open("/f", kMayWrite));
  CHECK(tell_length(writer, file, 50, 999) == Code::kOk);
  CHECK(tell_length(writer, file, 9, 5000) == Code::kOk);
  CHECK(records() == 10);
  CHECK(tell_length(writer, file, 12, 1200) == Code::kOk);
  CHECK(records() == 12);
  Envelope without;
  without.mutable_close()->set_length_file(file);
  CHECK(code_of(writer.ask(without)) == Code::kOk);
  CHECK(records() == 12);
  REQUIRE(other.remove("/f") == Code::kOk);
  CHECK(tell_length(writer, file, 50, 5000) == Code::kOk);
  CHECK_FALSE(other.exists("/f"));
}

TEST_CASE("a file below a folder that one may not search is not there by its id either, unless one has it open") {
  World world;
  Client owner(world), anna(world, 1001), bert(world, 1002);
  REQUIRE(owner.mkdir("/d/shut/in", true));
  const auto file = owner.put("/d/shut/in/f");
  REQUIRE(set_mode(owner, "/d/shut/in/f", 0666) == Code::kOk);
  REQUIRE(anna.open("/d/shut/in/f"));
  REQUIRE(set_mode(owner, "/d/shut", 0700) == Code::kOk);
  CHECK(bert.open("/d/shut/in/f").error().code == Code::kPermission);
  const auto refused = bert.reopen(file, kMayWrite);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kStaleFile);
  CHECK(refused.error().text == fmt::format("file {} was removed or replaced since it was opened", file));
  CHECK(bert.renew(file).empty());
  CHECK(rights_of(world, anna.renew(file)) == kMayRead);
  CHECK(anna.reopen(file));
  CHECK(rights_of(world, Client(world, 0).renew(file)) == (kMayRead | kMayWrite));
  world.start();
  anna.connect();
  owner.connect();
  CHECK(anna.renew(file).empty());  // nobody knows any more that she had it open
  CHECK(rights_of(world, owner.renew(file)) == (kMayRead | kMayWrite));
  REQUIRE(set_mode(owner, "/d/shut", 0711) == Code::kOk);
  CHECK(rights_of(world, anna.renew(file)) == (kMayRead | kMayWrite));
}

TEST_CASE("a renewal of many files looks once at each of the folders above them") {
  World world;
  Client owner(world), anna(world, 1001);
  std::string path;
  for (int depth = 0; depth < 50; ++depth) path += "/d";
  REQUIRE(owner.mkdir(path, true));
  Envelope request;
  for (int i = 0; i < 100; ++i) request.mutable_renew()->add_files(owner.put(path + "/f" + std::to_string(i)));
  const auto before = world.store->gets;
  const auto renewed = anna.ask(request);
  REQUIRE(renewed);
  for (const std::string& capability : renewed->renew_reply().capabilities())
    CHECK(rights_of(world, capability) == kMayRead);
  CHECK(world.store->gets - before < 500);
}

TEST_CASE("a renewal is of at most 4,096 files, and gives no session more than it may have open") {
  World world;
  Client owner(world), reader(world);
  constexpr std::size_t kOpensMax = 65'536, kFilesMax = 4096;
  world.messenger->sent.clear();
  std::vector<std::uint64_t> files, posted;
  for (std::size_t i = 0; i <= kOpensMax; ++i) {
    posted.push_back(owner.post(Client::create_request("/f" + std::to_string(i), true)));
    if (posted.size() < kFilesMax && i < kOpensMax) continue;
    world.run();
    for (const auto& [peer, reply] : world.messenger->sent) files.push_back(reply.create_reply().file());
    world.messenger->sent.clear();
    posted.clear();
  }
  REQUIRE(files.size() == kOpensMax + 1);
  const auto renew = [&](std::size_t first, std::size_t count) {
    Envelope request;
    request.mutable_renew()->mutable_files()->Add(files.begin() + first, files.begin() + first + count);
    return reader.ask(request);
  };
  const auto too_many = renew(0, kFilesMax + 1);
  REQUIRE(code_of(too_many) == Code::kTooLarge);
  CHECK_THAT(too_many.error().text, Catch::Contains("4096"));
  for (std::size_t first = 0; first < kOpensMax; first += kFilesMax)
    CHECK(code_of(renew(first, kFilesMax)) == Code::kOk);
  CHECK(code_of(renew(kOpensMax, 1)) == Code::kBusy);
  CHECK(reader.reopen(files[kOpensMax]).error().code == Code::kBusy);
  CHECK(code_of(renew(kOpensMax - 100, 100)) == Code::kOk);
  const auto made = reader.create("/made");
  REQUIRE(made);
  CHECK_FALSE(reader.renew(made->file()).empty());
  reader.close_file(files[0]);
  CHECK(code_of(renew(kOpensMax, 1)) == Code::kOk);
  Envelope all;
  all.mutable_close()->mutable_files()->Add(files.begin(), files.end());
  CHECK(code_of(reader.ask(all)) == Code::kOk);
  CHECK(code_of(renew(0, kFilesMax)) == Code::kOk);
}

}  // namespace pif::server::testing
