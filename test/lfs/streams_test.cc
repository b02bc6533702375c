// What a worker finds while it works: kept until its controller has it, and no more than there is room for.
#include "host.h"

#include "pif/base/limits.h"

namespace pif::lfs::test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kPart = 64u << 10;

struct Fixture {
  void run(const std::function<void()>& body) {
    host.run({1000, {1000}}, [&](sim::Actor& actor, net::Caller& calls, net::PeerId to) {
      self = &actor;
      caller = &calls;
      peer = to;
      REQUIRE(caller->call(peer, spawn(7), seconds(5), "host"));
      worker = host.worker(actor, 1);
      body();
    });
  }
  // Whether the LFS has taken it.
  bool stream(const std::string& bytes) {
    net::Packet packet;
    packet.envelope.mutable_worker_stream()->set_bytes(bytes);
    const auto answer = caller->call(worker, std::move(packet), seconds(5), "host");
    REQUIRE(answer);
    return answer->envelope.worker_stream_reply().taken();
  }
  // What comes of it from there on; at most so many bytes.
  std::string ask(std::uint64_t at, std::uint64_t bytes) {
    net::Packet packet;
    proto::JobWait& wait = *packet.envelope.mutable_job_wait();
    wait.set_job(7);
    auto& room = *wait.add_rooms();
    room.set_rank(0);
    room.set_at(at);
    room.set_bytes(bytes);
    const auto answer = caller->call(peer, std::move(packet), seconds(5), "host");
    REQUIRE(answer);
    std::string come;
    for (const auto& part : answer->envelope.job_wait_reply().parts()) {
      CHECK(part.at() == at + come.size());
      come += part.bytes();
    }
    return come;
  }

  Host host{1000};
  sim::Actor* self = nullptr;
  net::Caller* caller = nullptr;
  net::PeerId peer = 0, worker = 0;
};

}  // namespace

TEST_CASE("a stream comes in parts, from where the controller has it, as much as it takes") {
  Fixture f;
  f.run([&] {
    REQUIRE(f.stream(std::string(kPart, 'a')));
    REQUIRE(f.stream("bc"));
    CHECK(f.ask(0, 0).empty());
    CHECK(f.ask(0, 10) == std::string(10, 'a'));
    CHECK(f.ask(0, 10) == std::string(10, 'a'));  // asked again: the answer was lost
    CHECK(f.ask(10, 1u << 20).size() == kPart - 8);
    CHECK(f.ask(kPart + 1, 1u << 20) == "c");
    CHECK(f.ask(kPart + 2, 1u << 20).empty());
    CHECK(f.ask(0, 10).empty());  // that is forgotten
  });
}

TEST_CASE("a worker waits where its stream is full, and goes on when there is room") {
  Fixture f;
  f.run([&] {
    std::uint64_t taken = 0;
    while (f.stream(std::string(kPart, 'x'))) taken += kPart;
    CHECK(taken == 1u << 20);
    CHECK_FALSE(f.stream("y"));
    CHECK(f.ask(0, kPart).size() == kPart);
    CHECK(f.ask(kPart, 0).empty());
    CHECK(f.stream("y"));
  });
}

TEST_CASE("a part of a stream that is too long is refused, and so is one of who is no worker") {
  Fixture f;
  f.run([&] {
    const auto code_of = [&](net::PeerId by, const std::string& bytes) {
      net::Packet packet;
      packet.envelope.mutable_worker_stream()->set_bytes(bytes);
      return f.caller->call(by, std::move(packet), seconds(5), "host").error().code;
    };
    CHECK(code_of(f.worker, std::string(kPart + 1, 'x')) == Code::kTooLarge);
    CHECK(code_of(f.peer, "x") == Code::kPermission);
  });
}

}  // namespace pif::lfs::test
