// What is too long for one message: descriptions of jobs and results of workers come in parts.
#include "host.h"

#include "pif/base/limits.h"

namespace pif::lfs::test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kPart = 64u << 10;

Code code_of(const Result<net::Packet>& answer) { return answer ? Code::kOk : answer.error().code; }

net::Packet spawn_part(std::uint64_t job, const std::string& part, std::uint64_t at, std::uint64_t size) {
  net::Packet packet = spawn(job);
  packet.envelope.mutable_spawn()->set_description(part);
  packet.envelope.mutable_spawn()->set_description_at(at);
  packet.envelope.mutable_spawn()->set_description_size(size);
  return packet;
}
net::Packet start_at(std::uint64_t at) {
  net::Packet packet;
  packet.envelope.mutable_worker_start()->set_at(at);
  return packet;
}
net::Packet result_part(const std::string& bytes, bool more) {
  net::Packet packet;
  packet.envelope.mutable_worker_result()->set_result(bytes);
  packet.envelope.mutable_worker_result()->set_more(more);
  return packet;
}

struct Fixture {
  void run(const std::function<void()>& body) {
    host.run({1000, {1000}}, [&](sim::Actor& actor, net::Caller& calls, net::PeerId to) {
      self = &actor;
      caller = &calls;
      peer = to;
      body();
    });
  }
  Result<net::Packet> ask(net::Packet packet) { return ask_by(peer, std::move(packet)); }
  Result<net::Packet> ask_by(net::PeerId by, net::Packet packet) {
    return caller->call(by, std::move(packet), seconds(5), "host");
  }

  Host host{1000};
  sim::Actor* self = nullptr;
  net::Caller* caller = nullptr;
  net::PeerId peer = 0;
};

}  // namespace

TEST_CASE("a description in parts starts its worker with the last one, which asks for all of them") {
  Fixture f;
  f.run([&] {
    const std::string whole = std::string(kPart, 'a') + std::string(kPart, 'b') + "c";
    for (std::size_t at = 0; at < whole.size(); at += kPart) {
      CHECK(f.host.spawner.orders.empty());
      const auto answer = f.ask(spawn_part(7, whole.substr(at, kPart), at, whole.size()));
      REQUIRE(answer);
      CHECK(answer->envelope.spawn_reply().started() == (at + kPart < whole.size() ? 0 : 1));
      REQUIRE(f.ask(spawn_part(7, whole.substr(at, kPart), at, whole.size())));  // asked again: it counts once
    }
    CHECK(f.host.spawner.orders.size() == 1);
    const auto worker = f.host.worker(*f.self, 1);
    std::string got;
    while (got.size() < whole.size()) {
      const auto answer = f.ask_by(worker, start_at(got.size()));
      REQUIRE(answer);
      CHECK(answer->envelope.worker_start_reply().description_size() == whole.size());
      REQUIRE(!answer->envelope.worker_start_reply().description().empty());
      got += answer->envelope.worker_start_reply().description();
    }
    CHECK(got == whole);
    CHECK(code_of(f.ask_by(worker, start_at(whole.size() + 1))) == Code::kInvalid);
  });
}

TEST_CASE("a part that does not follow those before it, and a description that is too long, are refused") {
  Fixture f;
  f.run([&] {
    CHECK(code_of(f.ask(spawn_part(7, "b", 1, 2))) == Code::kInvalid);
    REQUIRE(f.ask(spawn_part(7, "a", 0, 3)));
    CHECK(code_of(f.ask(spawn_part(7, "c", 2, 3))) == Code::kInvalid);
    CHECK(code_of(f.ask(spawn_part(7, "bcd", 1, 3))) == Code::kInvalid);
    CHECK(code_of(f.ask(spawn_part(8, "a", 0, 100u << 20))) == Code::kTooLarge);
    CHECK(code_of(f.ask(spawn_part(9, "a", 0, UINT64_MAX))) == Code::kTooLarge);
    CHECK(f.host.spawner.orders.empty());
    REQUIRE(f.ask(spawn_part(7, "bc", 1, 3)));
    CHECK(f.host.spawner.orders.size() == 1);
  });
}

TEST_CASE("a result in parts comes in as many events, and a worker has one") {
  Fixture f;
  f.run([&] {
    REQUIRE(f.ask(spawn(7)));
    const auto worker = f.host.worker(*f.self, 1);
    REQUIRE(f.ask_by(worker, result_part("one", true)));
    REQUIRE(f.ask_by(worker, result_part("two", false)));
    CHECK(code_of(f.ask_by(worker, result_part("three", false))) == Code::kInvalid);
    const auto answer = f.ask(wait(7));
    REQUIRE(answer);
    const auto& events = answer->envelope.job_wait_reply().events();
    REQUIRE(events.size() == 2);
    CHECK(events[0].result() == "one");
    CHECK(events[0].more());
    CHECK(events[1].result() == "two");
    CHECK(!events[1].more());
  });
}

TEST_CASE("one worker's result, and what an LFS keeps of all jobs of a user, are bounded") {
  Fixture f;
  f.run([&] {
    const std::string part(kPart, 'x');
    std::uint64_t kept = 0;
    Code last = Code::kOk;
    for (std::uint64_t job = 1; last != Code::kBusy && job < 20; ++job) {
      REQUIRE(f.ask(spawn(job)));
      const auto worker = f.host.worker(*f.self, job);
      for (std::uint64_t bytes = 0; (last = code_of(f.ask_by(worker, result_part(part, true)))) == Code::kOk;
           bytes += kPart) {
        CHECK(bytes < 20u << 20);
        kept += kPart;
      }
      CHECK((last == Code::kTooLarge || last == Code::kBusy));
    }
    CHECK(last == Code::kBusy);
    CHECK(kept == 128u << 20);
    // What its controller has seen makes room.
    const auto events = f.ask(wait(1));
    REQUIRE(events);
    const auto seen = events->envelope.job_wait_reply().events().rbegin()->number();
    REQUIRE(f.ask(wait(1, seen)));
    REQUIRE(f.ask(spawn(100)));
    CHECK(f.ask(spawn_part(101, part, 0, 2 * kPart)));
  });
}

}  // namespace pif::lfs::test
