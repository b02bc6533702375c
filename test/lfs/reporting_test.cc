// What an LFS tells the PIF Server, and what it does when the server answers, or does not.
#include "fake_server.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

using Fixture = ReportingFixture;

}  // namespace

TEST_CASE("the server hears each second what the LFS has") {
  Fixture f;
  f.server.states[7] = 2;
  f.start_server();
  f.run([&](Peer& peer) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    f.node.disk->set_capacity(100u << 20);
    f.node.disk->set_inodes(1000, 3);
    peer.self().pause(std::chrono::seconds(10));
    CHECK(f.server.beats >= 9);
    CHECK(f.server.beats <= 13);
    CHECK(f.server.all_allowed);
    CHECK(f.server.node.id() == kNode);
    CHECK(f.server.node.name() == "lfs0");
    CHECK(f.server.node.components() == 1);
    CHECK(f.server.node.bytes_stored() == 500);
    CHECK(f.server.node.bytes_total() == 100u << 20);
    CHECK(f.server.node.bytes_free() > 0);
    CHECK(f.server.node.inodes_total() == 1000);
    CHECK(f.server.node.inodes_free() == 3);
    REQUIRE_OK(peer.settle({}, {7}));
    peer.self().pause(std::chrono::seconds(2));
    CHECK(f.server.node.components() == 0);
    CHECK(f.server.node.bytes_stored() == 0);
  });
}

TEST_CASE("after a start, what is sealed is kept, committed or removed as the server says") {
  Fixture f;
  f.server.states = {{11, 1}, {12, 2}};
  f.start_server();
  f.run([&](Peer& peer) {
    for (const auto id : {11, 12, 13}) Fixture::seal_one(peer, static_cast<std::uint64_t>(id));
    f.world.kill(f.actor);
    f.node.crash();
    f.node.start();
    peer.self().pause(std::chrono::seconds(5));
    for (const auto id : {11, 12, 13})
      CHECK(Fixture::state_of(peer, static_cast<std::uint64_t>(id)) == 2);  // nobody knows yet
    f.start_server();
    peer.self().pause(std::chrono::seconds(3));
    CHECK(Fixture::state_of(peer, 11) == 2);
    CHECK(Fixture::state_of(peer, 12) == 3);
    CHECK(Fixture::state_of(peer, 13) == 0);
    CHECK(f.node.check().value().damages.empty());
  });
}

TEST_CASE("what nobody has touched for a minute is asked about; what is unknown then is removed") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    peer.self().pause(std::chrono::seconds(5));  // the first contact is behind us
    TestFile open;
    open.id = 21;
    TestFile pending;
    pending.id = 22;
    f.server.states[22] = 1;
    REQUIRE_OK(peer.write(open, 0, 1, pattern(100, 1)));
    REQUIRE_OK(peer.write(pending, 0, 1, pattern(100, 1)));
    peer.self().pause(std::chrono::seconds(40));
    REQUIRE_OK(peer.write(open, 1, 1, pattern(100, 1)));
    peer.self().pause(std::chrono::seconds(40));
    CHECK(f.server.asked == std::vector<std::uint64_t>{22});
    peer.self().pause(std::chrono::seconds(25));
    CHECK(code_of(peer.write(open, 2, 1, pattern(100, 1))) == Code::kStaleFile);
    REQUIRE_OK(peer.write(pending, 1, 1, pattern(100, 1)));
  });
}

TEST_CASE("without a server everything else goes on, and when it is back it is asked at once") {
  Fixture f;
  f.start_server();
  f.server.states[31] = 1;
  f.run([&](Peer& peer) {
    peer.self().pause(std::chrono::seconds(3));
    f.world.kill(f.actor);
    const auto beats = f.server.beats;
    Fixture::seal_one(peer, 31);
    Fixture::seal_one(peer, 32);
    CHECK(peer.read(31, 0, 5).value() == pattern(500, 1));
    peer.self().pause(std::chrono::seconds(20));
    CHECK(f.server.beats == beats);
    f.server.states[31] = 2;
    f.start_server();
    peer.self().pause(std::chrono::seconds(4));
    CHECK(f.server.beats > beats);
    CHECK(Fixture::state_of(peer, 31) == 3);
    CHECK(Fixture::state_of(peer, 32) == 0);
  });
}

TEST_CASE("a server that was started again hears of the LFS within a fraction of a second, not at the next beat") {
  Fixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    peer.self().pause(std::chrono::seconds(3));
    for (int restart = 0; restart < 5; ++restart) {
      f.world.kill(f.actor);
      peer.self().pause(std::chrono::milliseconds(1234));
      const auto beats = f.server.beats;
      f.start_server();
      peer.self().pause(std::chrono::milliseconds(300));
      CHECK(f.server.beats > beats);
    }
  });
}

TEST_CASE("what the server could not say is asked again until it can") {
  Fixture f;
  f.server.states = {{51, 2}};
  f.server.refuses_states = true;
  f.start_server();
  f.run([&](Peer& peer) {
    for (const auto id : {51, 52}) Fixture::seal_one(peer, static_cast<std::uint64_t>(id));
    f.node.restart();
    peer.self().pause(std::chrono::seconds(10));
    CHECK(f.server.refused > 2);
    CHECK(f.server.beats > 5);  // that it has failed costs no beats
    CHECK(Fixture::state_of(peer, 51) == 2);
    CHECK(Fixture::state_of(peer, 52) == 2);
    f.server.refuses_states = false;
    peer.self().pause(std::chrono::seconds(5));
    CHECK(Fixture::state_of(peer, 51) == 3);
    CHECK(Fixture::state_of(peer, 52) == 0);
  });
}

TEST_CASE("what is being made of a file that was committed without it is removed") {
  Fixture f;
  f.start_server();
  f.server.states[61] = 2;
  f.run([&](Peer& peer) {
    TestFile late;
    late.id = 61;
    REQUIRE_OK(peer.write(late, 0, 5, pattern(500, 1)));
    peer.self().pause(std::chrono::seconds(70));
    CHECK(f.server.asked == std::vector<std::uint64_t>{61});
    CHECK(code_of(peer.seal(late, 5, 500)) == Code::kNotFound);
    CHECK(f.node.disk->files("/lfs0/data").empty());
  });
}

TEST_CASE("what all hosts have alike is taken when the server's host has a newer edition, and its refusal is no harm") {
  Fixture f;
  std::uint64_t edition = 3;
  unsigned offered = 0;
  f.node.adjust = [&](lfs::Config& config) {
    config.host = "h2";
    config.edition = [&] { return edition; };
    config.take_files = [&](const auto& files) -> Status {
      ++offered;
      if (files[0].content() != "good") return fail(Code::kInvalid, "bad description");
      edition = 4;
      return {};
    };
  };
  f.start_server();
  f.server.files.emplace_back().set_name("pif.toml");
  f.run([&](Peer& peer) {
    peer.self().pause(std::chrono::seconds(5));
    CHECK(f.server.node.host() == "h2");
    CHECK(f.server.beat.edition() == 3);
    CHECK(offered > 2);  // it may be good the next time
    f.server.files[0].set_content("good");
    peer.self().pause(std::chrono::seconds(3));
    CHECK(f.server.beat.edition() == 4);
    f.server.files.clear();
    const unsigned before = offered;
    peer.self().pause(std::chrono::seconds(3));
    CHECK(offered == before);
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
  });
}
