// Turns of the event loop: what belongs to one, and what happens when the transport or the disk fails in it.
#include "pif/kv/value.h"
#include "pif/proto/stored.pb.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

Code code_of(const Result<Envelope>& reply) { return reply ? Code::kOk : reply.error().code; }

std::uint64_t rows_of(World& world, kv::Table table) {
  auto rows = world.store->read();
  REQUIRE(rows);
  return (*rows)->count(table).value();
}

}  // namespace

TEST_CASE("a server whose transport fails ends with that error, one that is interrupted without, and answers first") {
  for (const unsigned receives : {0u, 1u}) {
    for (const Code code : {Code::kIo, Code::kCancelled}) {
      World world;
      Client client(world);
      const auto id = client.post(Client::folder_request("/d"));
      world.messenger->receive_error = Error{code, "the end", {}};
      world.messenger->receives_until_error = receives;
      const std::atomic<bool> never = false;
      Status ended;
      if (code == Code::kCancelled && receives > 0) {  // ends the turn, not the server
        world.run();
      } else {
        ended = world.server->serve(never);
      }
      CHECK((ended ? Code::kOk : ended.error().code) == (code == Code::kIo ? Code::kIo : Code::kOk));
      CHECK(client.answer(id).has_value() == (code == Code::kCancelled && receives > 0));
    }
  }
}

TEST_CASE("what has come belongs to one turn and one commit, within bounds of requests and of entries") {
  World world;
  Client client(world);
  const auto commits_of = [&](const std::function<void()>& post) {
    world.run();
    const auto before = world.store->commits;
    post();
    world.run();
    return world.store->commits - before;
  };
  const auto folders = [&](const std::string& name, int count) {
    for (int i = 0; i < count; ++i) client.post(Client::folder_request("/" + name + std::to_string(i)));
  };
  CHECK(commits_of([&] { folders("a", 100); }) == 1);
  CHECK(commits_of([&] { folders("b", 600); }) == 2);
  CHECK(commits_of([&] {
          folders("c", 1);
          Envelope stat;
          for (int i = 0; i < 4096; ++i) stat.mutable_stat()->add_paths("/x");
          client.post(stat);
          folders("d", 1);
        }) == 2);
  CHECK(client.exists("/b599"));
  CHECK(client.exists("/d0"));
}

TEST_CASE("an answer that no packet takes is an error, and one that cannot be sent is lost without harm") {
  World world;
  Client client(world);
  world.messenger->send_errors = {Error{Code::kTooLarge, "over the limit", {}}};
  CHECK(code_of(client.mkdir("/a")) == Code::kTooLarge);
  CHECK(client.exists("/a"));
  world.messenger->send_errors = {Error{Code::kTooLarge, "over the limit", {}}, Error{Code::kUnavailable, "gone", {}}};
  CHECK(code_of(client.mkdir("/b")) == Code::kTimeout);
  world.messenger->send_errors = {Error{Code::kUnavailable, "gone", {}}};
  CHECK(code_of(client.mkdir("/c")) == Code::kTimeout);
  CHECK(client.exists("/b"));
  CHECK(client.exists("/c"));
}

TEST_CASE("what no server asks for is no operation, and an answer that nobody waits for is nothing") {
  World world;
  Client client(world);
  const auto peer = client.peer();
  Envelope unasked;
  unasked.set_version(kProtocolVersion);
  unasked.set_id(77);
  unasked.mutable_done();
  world.messenger->deliver(peer, unasked);
  world.run();
  CHECK_FALSE(world.reply(peer, 77));
  Envelope mail;
  mail.mutable_worker_mail();
  CHECK(code_of(client.ask(mail)) == Code::kUnsupported);
}

TEST_CASE("old answers that could not be dropped are dropped an hour later") {
  World world;
  for (int i = 0; i < 5; ++i) {
    Client client(world);
    REQUIRE(client.mkdir("/d" + std::to_string(i)));
    client.close();
  }
  world.advance(60);
  const auto kept = rows_of(world, 3);
  REQUIRE(kept >= 5);
  world.faults->fail_at(0, sim::Fault::kIoError, true);
  world.advance(25 * 3600);
  world.faults->heal();
  CHECK(rows_of(world, 3) == kept);
  world.advance(3601);
  CHECK(rows_of(world, 3) == 0);
}

TEST_CASE("whichever call fails when what a program was creating is aborted, it is aborted in the end") {
  for (std::uint64_t call = 0, failed = 1; failed > 0; ++call) {
    World world;
    Client idle(world), creator(world), watcher(world);
    REQUIRE(creator.create("/lost"));
    REQUIRE(watcher.nodes().pending() == 1);
    idle.close();
    creator.close();
    world.faults->fail_at(call, sim::Fault::kIoError, false);
    for (int i = 0; i < 40; ++i) world.advance(1);
    failed = world.faults->has_failed() ? 1 : 0;
    world.faults->heal();
    world.live(100);
    CHECK(watcher.nodes().pending() == 0);
    CHECK(watcher.nodes().sessions() == 1);
    require_sound(world);
  }
}

TEST_CASE("stored answers of more than a day are erased within the hour, however many, and a step at a time") {
  constexpr kv::Table kRecentTable = 3;
  World world;
  const auto store = [&](std::uint64_t first, std::uint64_t count, std::int64_t age) {
    auto rows = std::move(world.store->write()).value();
    for (std::uint64_t id = first; id < first + count; ++id) {
      proto::StoredAnswer answer;
      answer.set_time(world.clock.wall_seconds() - age);
      REQUIRE(rows->put(kRecentTable, kv::key_u64(id), kv::seal_value(answer.SerializeAsString())));
    }
    REQUIRE(rows->commit());
  };
  constexpr std::int64_t kDay = 24 * 3600;
  store(1, 3000, kDay);
  store(3001, 2000, 0);
  store(5001, 3000, kDay);
  world.advance(3600);
  CHECK(rows_of(world, kRecentTable) == 7000);
  for (int second = 0; second < 5; ++second) world.advance(1);
  CHECK(rows_of(world, kRecentTable) == 4000);
  for (int second = 0; second < 4; ++second) world.advance(1);
  CHECK(rows_of(world, kRecentTable) == 2000);
  store(1, 1, kDay + 1);
  world.advance(60);
  CHECK(rows_of(world, kRecentTable) == 2001);
  world.advance(3600);
  CHECK(rows_of(world, kRecentTable) == 2000);
}

}  // namespace pif::server::testing
