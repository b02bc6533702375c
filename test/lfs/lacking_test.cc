// LFSs that do not have a worker's program, or have another build of it: what they say, and how it is brought.
#include "host.h"
#include "pif/base/limits.h"
#include "sim/program_file.h"

namespace pif::lfs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kBuild = "0123456789abcdefghij";

Code code_of(const Result<net::Packet>& answer) { return answer ? Code::kOk : answer.error().code; }

net::Packet spawn_build(std::uint64_t job, std::uint32_t rank = 0) {
  net::Packet packet = spawn(job, rank);
  packet.envelope.mutable_spawn()->set_build(kBuild);
  packet.envelope.mutable_spawn()->set_description("what to do");
  return packet;
}

// A part of a program of `size` bytes, or what starts its worker.
net::Packet part(std::uint64_t job, std::uint32_t rank, std::uint64_t at, std::uint64_t size,
                 std::span<const std::byte> bytes = {}) {
  net::Packet packet = spawn(job, rank);
  proto::Spawn& asked = *packet.envelope.mutable_spawn();
  asked.set_build(kBuild);
  asked.set_program_at(at);
  asked.set_program_size(size);
  packet.body = net::Buffer::copy_of(bytes);
  return packet;
}

// A client of a host that has no programs, over a route on which parts of programs travel.
struct Fixture {
  explicit Fixture(std::uint32_t uid = 1000) : host(uid) { host.spawner.lacks = true; }

  void run(const std::function<void()>& body) {
    host.run(
        {1000, {1000}},
        [&](sim::Actor& actor, net::Caller& calls, net::PeerId to) {
          self = &actor;
          caller = &calls;
          peer = to;
          body();
        },
        net::Route::kIpc);
  }
  Result<net::Packet> call(net::Packet packet, std::uint32_t uid = 1000) {
    const auto later = self->clock().wall_seconds() + 600;
    packet.envelope.set_credential(mint(host.config.key, Credential{SessionId(1), uid, {uid}, later}));
    return caller->call(peer, std::move(packet), seconds(5), "host");
  }
  proto::SpawnReply ask(net::Packet packet, std::uint32_t uid = 1000) {
    const auto answer = call(std::move(packet), uid);
    REQUIRE(answer);
    return answer->envelope.spawn_reply();
  }
  void bring(std::uint64_t job, std::uint32_t rank = 0) {
    for (std::size_t at = 0; at < program.size(); at += kBulkBytes) {
      const auto some = std::span(program).subspan(at, std::min(kBulkBytes, program.size() - at));
      CHECK(ask(part(job, rank, at, program.size(), some)).started() == 0);
    }
  }

  Host host;
  std::vector<std::byte> program = sim::program_file(kBuild, 2'500'000);
  sim::Actor* self = nullptr;
  net::Caller* caller = nullptr;
  net::PeerId peer = 0;
};

}  // namespace

TEST_CASE("an LFS that lacks a program says which worker was not started, and starts it when the program has come") {
  Fixture f;
  f.run([&] {
    const auto lacking = f.ask(spawn_build(7, 4));
    CHECK(lacking.started() == 0);
    REQUIRE(lacking.lacking_size() == 1);
    CHECK(lacking.lacking(0) == 4);
    f.bring(7, 4);
    CHECK(f.host.spawner.orders.size() == 1);  // not before it is asked for
    const auto started = f.ask(part(7, 4, f.program.size(), f.program.size()));
    CHECK(started.started() == 1);
    CHECK(started.lacking_size() == 0);
    CHECK(f.host.spawner.from_store == std::set<Spawner::ProcessId>{2});
    net::Packet start;
    start.envelope.mutable_worker_start();
    const auto told = f.caller->call(f.host.worker(*f.self, 2), std::move(start), seconds(5), "host");
    REQUIRE(told);
    CHECK(told->envelope.worker_start_reply().description() == "what to do");
    CHECK(told->envelope.worker_start_reply().rank() == 4);
  });
}

TEST_CASE("an LFS that lacks a program hands the tree on all the same, and says who else lacks it") {
  Fixture f;
  Host has{1000, "lfs1", f.host.owned}, lacks{1000, "lfs2", f.host.owned};
  lacks.spawner.lacks = true;
  has.start();
  lacks.start();
  f.run([&] {
    net::Packet packet = spawn_build(7);
    packet.envelope.mutable_spawn()->set_fan_out(1);
    for (const auto* other : {&has, &lacks}) {
      proto::SpawnNode& node = *packet.envelope.mutable_spawn()->add_subtree();
      node.set_rank(other == &has ? 1 : 2);
      *node.mutable_node() = other->info();
    }
    const auto answer = f.ask(std::move(packet));
    CHECK(answer.started() == 1);
    CHECK(std::set<std::uint32_t>(answer.lacking().begin(), answer.lacking().end()) == std::set<std::uint32_t>{0, 2});
    CHECK(has.spawner.orders.at(0).build == kBuild);
  });
}

TEST_CASE("a program that was brought is there for the user's next jobs, and for no other user's") {
  Fixture f(0);
  f.run([&] {
    CHECK(f.ask(spawn_build(7), 1001).lacking_size() == 1);
    f.program.resize(4096);  // one part
    f.ask(part(7, 0, 0, f.program.size(), f.program), 1001);
    CHECK(f.ask(part(7, 0, f.program.size(), f.program.size()), 1001).started() == 1);
    CHECK(f.ask(spawn_build(8), 1001).started() == 1);
    CHECK(f.ask(spawn_build(9), 1002).lacking_size() == 1);
  });
}

TEST_CASE("parts of a program that are sent again are answered as they were, and start one worker only") {
  Fixture f;
  f.run([&] {
    CHECK(f.ask(spawn_build(7)).lacking_size() == 1);
    CHECK(f.ask(spawn_build(7)).lacking_size() == 1);
    f.bring(7);
    f.bring(7);
    for (int i = 0; i < 2; ++i) CHECK(f.ask(part(7, 0, f.program.size(), f.program.size())).started() == 1);
    CHECK(f.host.spawner.orders.size() == 2);
  });
}

TEST_CASE("several workers of an LFS that lacks their program need it once") {
  Fixture f;
  f.run([&] {
    for (const std::uint32_t rank : {0u, 1u}) CHECK(f.ask(spawn_build(7, rank)).lacking_size() == 1);
    f.bring(7);
    for (const std::uint32_t rank : {0u, 1u})
      CHECK(f.ask(part(7, rank, f.program.size(), f.program.size())).started() == 1);
  });
}

TEST_CASE(
    "a program that nobody lacks, without a build, of another build, too long, or in the wrong order is refused") {
  Fixture f;
  f.program.resize(4096);
  f.run([&] {
    const auto size = f.program.size();
    CHECK(code_of(f.call(part(7, 0, 0, size, f.program))) == Code::kInvalid);  // of a job that there is not
    CHECK(f.ask(spawn_build(7)).lacking_size() == 1);
    CHECK(code_of(f.call(part(7, 1, 0, size, f.program))) == Code::kInvalid);
    net::Packet nameless = part(7, 0, 0, size, f.program);
    nameless.envelope.mutable_spawn()->clear_build();
    CHECK(code_of(f.call(std::move(nameless))) == Code::kInvalid);
    CHECK(code_of(f.call(part(7, 0, 1000, size, std::span(f.program).subspan(1000)))) == Code::kInvalid);
    CHECK(code_of(f.call(part(7, 0, 0, size, std::span(f.program).first(10)))) == Code::kInvalid);
    CHECK(code_of(f.call(part(7, 0, 0, (64u << 20) + 1, std::vector<std::byte>(kBulkBytes)))) == Code::kTooLarge);
    const auto other = sim::program_file("another build", size);
    const auto refused = f.call(part(7, 0, 0, size, other));
    REQUIRE(code_of(refused) == Code::kInvalid);
    CHECK(refused.error().text.find("another build") != std::string::npos);
    CHECK(f.host.spawner.orders.size() == 1);
    CHECK(f.host.disk->files("/root/programs").size() <= 1);  // what the job still has
  });
}

TEST_CASE("a worker that is asked for before its program has come lacks it still") {
  Fixture f;
  f.run([&] {
    CHECK(f.ask(spawn_build(7)).lacking_size() == 1);
    CHECK(f.ask(part(7, 0, f.program.size(), f.program.size())).lacking_size() == 1);
  });
}

TEST_CASE("nobody brings a program to another user's job") {
  Fixture f(0);
  f.run([&] {
    CHECK(f.ask(spawn_build(7), 1001).lacking_size() == 1);
    f.program.resize(4096);
    CHECK(code_of(f.call(part(7, 0, 0, f.program.size(), f.program), 1002)) == Code::kPermission);
    CHECK(code_of(f.call(part(7, 0, f.program.size(), f.program.size()), 1002)) == Code::kPermission);
    CHECK(f.host.disk->files("/root").empty());
  });
}

TEST_CASE("a spawn is answered when it is known whether the program is there") {
  Fixture f;
  f.host.spawner.lacks = false;
  f.host.spawner.holds = true;
  f.host.world.spawn("disk", [&](sim::Actor& self) {
    if (self.pause(seconds(2))) f.host.spawner.holds = false;
  });
  f.run([&] {
    const Time begin = f.self->clock().now();
    CHECK(f.ask(spawn_build(7)).started() == 1);
    CHECK(f.self->clock().now() - begin > milliseconds(1900));
    CHECK(f.self->clock().now() - begin < milliseconds(2100));
  });
}

TEST_CASE("a worker that ends before anybody knows whether it began counts as started, and its end is told") {
  Fixture f;
  f.host.spawner.lacks = false;
  f.host.spawner.holds = true;
  f.host.spawner.end(1, {true, 11, {}});
  f.run([&] {
    CHECK(f.ask(spawn_build(7)).started() == 1);
    const auto events = f.call(wait(7));
    REQUIRE(events);
    REQUIRE(events->envelope.job_wait_reply().events_size() == 1);
    CHECK(events->envelope.job_wait_reply().events(0).killed() == 11);
  });
}

TEST_CASE("a job whose program is still to come is not over, and nothing is told of what could not run") {
  Fixture f;
  f.run([&] {
    CHECK(f.ask(spawn_build(7)).lacking_size() == 1);
    net::Packet later = wait(7);
    later.envelope.mutable_job_wait()->set_started(true);
    for (int i = 0; i < 20; ++i) {
      const auto events = f.call(net::Packet{later.envelope, {}, {}});
      REQUIRE(events);
      CHECK(events->envelope.job_wait_reply().events_size() == 0);
    }
    f.bring(7);
    CHECK(f.ask(part(7, 0, f.program.size(), f.program.size())).started() == 1);
  });
}

TEST_CASE("what has come of a program goes when its job is ended") {
  Fixture f;
  f.run([&] {
    CHECK(f.ask(spawn_build(7)).lacking_size() == 1);
    f.ask(part(7, 0, 0, f.program.size(), std::span(f.program).first(kBulkBytes)));
    CHECK(f.host.disk->files("/root/programs").size() == 1);
    REQUIRE(f.call(kill(7)));
    CHECK(f.host.disk->files("/root/programs").empty());
  });
}

}  // namespace pif::lfs::test
