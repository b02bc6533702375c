// Whether a server goes along with its directory: it asks all LFSs first, and a person may decide otherwise
// (docs/ARCHITECTURE.md).
#include <fmt/format.h>

#include "pif/wire/values.h"
#include "server/fixture.h"

namespace pif::server::testing {
namespace {

using enum wire::BeatStage;
using enum wire::Verdict;

struct Meeting {
  explicit Meeting(World& world_in) : world(world_in) {}

  proto::HeartbeatReply beat(std::uint32_t id, std::uint32_t stage, proto::Moment kept = {}) {
    Envelope request = world.heartbeat(id);
    request.mutable_heartbeat()->set_stage(stage);
    *request.mutable_heartbeat()->mutable_kept() = std::move(kept);
    world.messenger->forget_replies();
    world.messenger->deliver(world.lfs_peer(id), request);
    world.run();
    const auto reply = world.reply(world.lfs_peer(id), 1);
    REQUIRE(reply);
    return reply->heartbeat_reply();
  }

  World& world;
};

proto::Moment lost_moment(std::uint64_t index) {
  proto::Moment moment;
  moment.set_run(77);
  moment.set_index(index);
  return moment;
}

}  // namespace

TEST_CASE("nobody is told anything of a directory before all LFSs that it knows have been asked") {
  World world(2);
  world.gather_max = std::chrono::seconds(3);
  world.start();
  Meeting meeting(world);
  CHECK(meeting.beat(1, kAsks).verdict() == kNotYet);
  CHECK(meeting.beat(1, kServes).verdict() == kNotYet);
  SECTION("one that has seen a newer one: it is told to all") {
    CHECK(meeting.beat(2, kAsks, lost_moment(100)).verdict() == kServerBehind);
    CHECK(meeting.beat(1, kAsks).verdict() == kServerBehind);
  }
  SECTION("the last one ends that") {
    CHECK(meeting.beat(2, kAsks).verdict() == kAdmitted);
    CHECK(meeting.beat(1, kAsks).verdict() == kAdmitted);
  }
  SECTION("one that does not come is not waited for long") {
    world.advance(4);
    CHECK(meeting.beat(1, kAsks).verdict() == kAdmitted);
  }
}

TEST_CASE("a directory that is kept is kept for every LFS, however much each was told by the lost one") {
  World world(2);
  Meeting meeting(world);
  const auto [first, second] = GENERATE(std::pair(101, 100), std::pair(100, 101));
  CHECK(meeting.beat(1, kAsks, lost_moment(static_cast<std::uint64_t>(first))).verdict() == kServerBehind);
  CHECK(meeting.beat(2, kAsks, lost_moment(static_cast<std::uint64_t>(second))).verdict() == kServerBehind);
  Client person(world);
  Envelope request;
  request.mutable_adopt_files()->set_done(true);
  REQUIRE(person.ask(request));
  CHECK(meeting.beat(1, kAsks, lost_moment(static_cast<std::uint64_t>(first))).verdict() == kAdmitted);
  CHECK(meeting.beat(2, kAsks, lost_moment(static_cast<std::uint64_t>(second))).verdict() == kAdmitted);
}

TEST_CASE("a file that was being created when the directory was copied, and was committed since, is found again") {
  World world(1);
  Client creator(world);
  const auto made = creator.create("/a");
  REQUIRE(made);
  world.start();
  world.heartbeats();
  Meeting meeting(world);
  CHECK(meeting.beat(1, kServes, lost_moment(100)).verdict() == kServerBehind);
  Client person(world);
  Envelope request;
  const std::uint64_t of_lost_run = 0x1234567800000003;
  for (const std::uint64_t file : {made->file(), of_lost_run}) {
    auto& one = *request.mutable_adopt_files()->add_files();
    one.set_file(file);
    *one.mutable_format() = Client::create_request("/a").create().format();
    one.mutable_layout()->add_nodes(1);
    one.mutable_file_length()->set_records(5);
    one.mutable_file_length()->set_bytes(500);
  }
  request.mutable_adopt_files()->set_done(true);
  REQUIRE(person.ask(request));
  CHECK(person.stat(fmt::format("/lost+found/{:016x}", made->file())).value().file_length().records() == 5);
  world.live(700);  // whoever created it does not come back
  CHECK(person.stat(fmt::format("/lost+found/{:016x}", made->file())).value().id() == made->file());
  world.server.reset();
  const auto report = check_directory(*kv::open_memory(world.state));
  REQUIRE(report);
  CHECK(report->damages.empty());
}

}  // namespace pif::server::testing
