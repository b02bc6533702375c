// How an LFS that starts comes to serve, and what it does on whose word: docs/FORMAT.md "Who is how old".
#include "appender.h"
#include "fake_server.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

using Fixture = ReportingFixture;

std::vector<std::uint64_t> quarantined(Peer& peer) {
  auto list = peer.request(0, kMayManage);
  list.envelope.mutable_list_components()->set_quarantined(true);
  const auto reply = peer.call(std::move(list));
  REQUIRE_OK(reply);
  std::vector<std::uint64_t> files;
  for (const auto& c : reply->envelope.list_components_reply().components()) files.push_back(c.shape().file());
  return files;
}

Code settle_at(Peer& peer, const proto::Moment& moment, std::uint64_t removed) {
  auto packet = peer.request(0, kMayManage);
  *packet.envelope.mutable_settle()->mutable_moment() = moment;
  packet.envelope.mutable_settle()->add_removed(removed);
  return code_of(peer.call(std::move(packet)));
}

}  // namespace

TEST_CASE("an LFS serves once the server has admitted it, and knows that it has kept what it was offered") {
  Fixture f;
  f.run([&](Peer& peer) {
    TestFile file;
    const auto refused = peer.write(file, 0, 5, pattern(500, 1));
    CHECK(code_of(refused) == Code::kUnavailable);
    CHECK_THAT(refused.error().text, Catch::Contains("waits for the PIF Server"));
    f.start_server();
    REQUIRE_OK(peer.put(file, pattern(500, 1)));
    REQUIRE(f.server.stages.size() >= 3);
    CHECK(f.server.stages[0] == wire::kAsks);
    CHECK(f.server.stages[1] == wire::kConfirms);
    CHECK(f.server.stages[2] == wire::kServes);
    CHECK(f.server.beat.node().incarnation() == 101);
  });
}

TEST_CASE("what came while the LFS was being admitted is answered then") {
  Fixture f;
  f.run([&](Peer& peer) {
    auto packet = peer.request(7, kMayRead);
    packet.envelope.mutable_length()->set_file(7);
    const auto call = peer.start(std::move(packet));
    peer.self().pause(std::chrono::seconds(1));
    f.start_server();
    const auto answer = peer.wait(call);  // without a lease it cannot say that the file is empty
    CHECK((answer || answer.error().code == Code::kNotFound));
  });
}

TEST_CASE(
    "numbers rise with every durable change and are never lower after a start; what the server told is kept with "
    "them") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    peer.self().pause(std::chrono::seconds(2));
    const auto put = f.server.beat.node().number();
    CHECK(put > 0);
    REQUIRE_OK(peer.overwrite(7, 1, 1, pattern(100, 2)));
    peer.self().pause(std::chrono::seconds(2));
    const auto overwritten = f.server.beat.node().number();
    CHECK(overwritten > put);
    f.node.crash();
    f.server.stages.clear();
    f.node.start();
    peer.self().pause(std::chrono::seconds(2));
    CHECK(f.server.beat.node().number() >= overwritten);
    CHECK(f.server.beat.node().incarnation() == 102);
    CHECK(f.server.beat.kept().run() == 1);
    CHECK(f.server.beat.kept().index() >= 102);
  });
}

TEST_CASE("a start presents the number that is on the disk, before anything of its own") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    REQUIRE_OK(peer.overwrite(7, 1, 1, pattern(100, 2)));
    const auto disk = f.node.disk->copy();
    const auto catalogue = kv::copy_memory_state(*f.node.catalogue);
    peer.self().pause(std::chrono::seconds(2));
    const auto number = f.server.beat.node().number();
    f.node.kill();
    f.world.kill(f.actor);
    f.node.disk = disk;
    f.node.catalogue = catalogue;
    f.server.beats = 0;
    f.start_server();
    f.server.verdict = wire::kIsStale;
    f.node.start();
    peer.self().pause(std::chrono::seconds(1));
    REQUIRE(f.server.beats > 0);
    CHECK(f.server.beat.node().number() <= number);
    CHECK(f.server.beat.node().number() > 0);
  });
}

TEST_CASE(
    "a stale LFS serves nothing but what tells how it is, until it is admitted after all; then it asks about all it "
    "has") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}, {8, 2}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    peer.self().pause(std::chrono::seconds(65));  // it has been settled
    f.server.asked.clear();
    f.server.verdict = wire::kIsStale;
    f.node.restart();
    peer.self().pause(std::chrono::seconds(2));
    const auto refused = peer.read(7, 0, 1);
    CHECK(code_of(refused) == Code::kStaleNode);
    CHECK(refused.error().text == "why");
    CHECK(Fixture::state_of(peer, 7) != 0);
    f.server.verdict = 0;
    f.server.ask_all = true;
    peer.self().pause(std::chrono::seconds(3));
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
    CHECK(f.server.asked == std::vector<std::uint64_t>{7});
    CHECK(f.server.beat.node().taken_back() == f.server.beat.node().incarnation());
  });
}

TEST_CASE("a server that is behind is not asked, nor obeyed, and an LFS that serves goes on") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    f.world.kill(f.actor);
    f.server.verdict = wire::kServerBehind;
    f.server.session = 2;
    f.server.index = 5;
    f.server.asked.clear();
    f.start_server();
    peer.self().pause(std::chrono::seconds(70));
    CHECK(f.server.asked.empty());
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
    CHECK(settle_at(peer, f.server.moment(), 7) == Code::kStaleServer);
    CHECK(f.server.beat.kept().run() == 1);
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
  });
}

TEST_CASE("a word from an earlier moment of the same server is not obeyed") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    proto::Moment before = f.server.moment();
    before.set_index(before.index() - 1);
    CHECK(settle_at(peer, before, 7) == Code::kStaleServer);
    CHECK(settle_at(peer, f.server.moment(), 7) == Code::kOk);
    CHECK(code_of(peer.read(7, 0, 1)) == Code::kStaleFile);
  });
}

TEST_CASE(
    "what the server does not know is removed if it was made in its present run, else in quarantine, and can come "
    "back") {
  Fixture f;
  f.server.unknown = 4;
  f.start_server();
  f.run([&](Peer& peer) {
    Fixture::seal_one(peer, 11);
    peer.self().pause(std::chrono::seconds(65));
    CHECK(Fixture::state_of(peer, 11) == 0);
    CHECK(quarantined(peer).empty());
    Fixture::seal_one(peer, 12);
    f.world.kill(f.actor);
    f.server.session = 2;
    f.start_server();
    peer.self().pause(std::chrono::seconds(65));
    CHECK(Fixture::state_of(peer, 12) == 0);
    CHECK(quarantined(peer) == std::vector<std::uint64_t>{12});
    CHECK(code_of(peer.write(TestFile{.id = 12}, 0, 5, pattern(500, 1))) == Code::kStaleFile);
    f.node.crash();
    f.node.start();
    peer.self().pause(std::chrono::seconds(2));
    // The removal of 11 was not durable: its files are put aside.
    CHECK(quarantined(peer) == std::vector<std::uint64_t>{11, 12});
    REQUIRE_OK(peer.settle({12}, {}));
    CHECK(quarantined(peer) == std::vector<std::uint64_t>{11});
    CHECK(peer.read(12, 0, 5).value() == pattern(500, 1));
    CHECK(f.node.check().value().damages.empty());
  });
}

TEST_CASE("what an append made in the present run is kept, too: its file was committed, in whatever run") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{13, 2}};
    Appender appender(peer.self(), {&f.node}, TestFile{.id = 13});
    const auto grant = appender.reserve(5, 500);
    REQUIRE_OK(grant);
    REQUIRE_OK(appender.rows(0, *grant, 0, 5, pattern(500, 1)));
    REQUIRE_OK(appender.done(*grant));
    auto packet = peer.request(0, kMayManage);
    *packet.envelope.mutable_settle()->mutable_moment() = f.server.moment();
    packet.envelope.mutable_settle()->add_aborted(13);
    REQUIRE_OK(peer.call(std::move(packet)));
    CHECK(quarantined(peer) == std::vector<std::uint64_t>{13});
  });
}

TEST_CASE("what one run of the server had removed, another one may have again") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    const TestFile file{.id = 14};
    REQUIRE_OK(peer.put(file, pattern(500, 1)));
    peer.self().pause(std::chrono::seconds(1));
    CHECK(settle_at(peer, f.server.moment(), 14) == Code::kOk);
    CHECK(code_of(peer.read(14, 0, 5)) == Code::kStaleFile);
    f.world.kill(f.actor);
    f.server.session = 2;
    f.start_server();
    peer.self().pause(std::chrono::seconds(3));
    CHECK(code_of(peer.read(14, 0, 5)) == Code::kNotFound);
  });
}

TEST_CASE("what is unsettled leaves the quarantine after a day, what was committed after a week") {
  Fixture f;
  f.server.unknown = 4;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{22, 2}};
    Fixture::seal_one(peer, 21);
    Fixture::seal_one(peer, 22);
    REQUIRE_OK(peer.settle({22}, {}));
    f.world.kill(f.actor);
    f.server.session = 2;
    f.server.states.clear();
    f.server.ask_all = true;
    f.start_server();
    f.node.restart();
    peer.self().pause(std::chrono::seconds(65));
    CHECK(quarantined(peer) == std::vector<std::uint64_t>{21, 22});
    f.world.leap(std::chrono::hours(25));
    peer.self().pause(std::chrono::seconds(65));
    CHECK(quarantined(peer) == std::vector<std::uint64_t>{22});
    f.world.leap(std::chrono::hours(24 * 6));
    peer.self().pause(std::chrono::seconds(65));
    CHECK(quarantined(peer).empty());
    CHECK(f.node.disk->files("/lfs0/data").empty());
  });
}

TEST_CASE("while commits are held nothing becomes durable; then it all does") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}, {8, 1}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    const auto hold = [&](std::uint32_t for_ms) {
      auto packet = peer.request(0, kMayManage);
      packet.envelope.mutable_hold()->set_for_ms(for_ms);
      return code_of(peer.call(std::move(packet)));
    };
    REQUIRE(hold(10'000) == Code::kOk);
    peer.self().pause(std::chrono::seconds(2));
    const auto number = f.server.beat.node().number();
    auto packet = peer.request(7, kMayWrite);
    packet.envelope.mutable_overwrite()->set_file(7);
    packet.envelope.mutable_overwrite()->set_first(1);
    packet.envelope.mutable_overwrite()->set_count(1);
    packet.body = buffer_of(pattern(100, 9));
    const auto call = peer.start(std::move(packet));
    peer.self().pause(std::chrono::seconds(3));
    CHECK(f.server.beat.node().number() == number);
    CHECK(peer.read(7, 1, 1).value() == pattern(500, 1).substr(100, 100));
    REQUIRE(hold(0) == Code::kOk);
    REQUIRE_OK(peer.wait(call));
    CHECK(peer.read(7, 1, 1).value() == pattern(100, 9));
    REQUIRE(hold(2'000) == Code::kOk);
    REQUIRE_OK(peer.overwrite(7, 2, 1, pattern(100, 8)));  // it ends by itself
    CHECK(hold(400'000) == Code::kTooLarge);
  });
}
