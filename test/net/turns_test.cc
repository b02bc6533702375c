// What peers ask of a daemon, in turn: with a messenger that is handed its packets, and over ZeroMQ.
#include <set>

#include "sim/by_hand.h"
#include "world.h"

#include "pif/net/calls.h"
#include "pif/net/turns.h"

namespace pif::net {
namespace {

Packet read_request(std::uint64_t number) {
  Packet request;
  request.envelope.set_id(number + 1);
  request.envelope.mutable_read()->set_file(number);
  return request;
}
Packet numbered(std::uint64_t number, std::size_t body_bytes = 0) {
  Packet request;
  request.envelope.set_id(number + 1);
  request.envelope.mutable_write()->set_first(number);
  if (body_bytes > 0) request.body = Buffer(body_bytes);
  return request;
}

struct Fixture {
  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  Turns turns{messenger, "lfs0"};
  PeerId a = messenger.add({.via = Identity::Via::kUnix, .has_uid = true, .uid = 7});
  PeerId b = messenger.add({.via = Identity::Via::kIpc});

  std::optional<Turns::Arrival> next() { return must(turns.receive(Time::min())); }
  // The peers of `count` requests, in the order in which they come, as letters; a's cost `bytes`.
  std::string order(std::size_t count, std::uint64_t bytes = 0) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
      const auto arrival = next();
      REQUIRE(arrival.has_value());
      out += arrival->delivery.peer == a ? 'a' : 'b';
      if (arrival->delivery.peer == a) turns.charge(a, bytes);
    }
    return out;
  }
};

TEST_CASE("a request that comes alone is handed out at once, with the time of its arrival") {
  Fixture f;
  f.clock.advance(std::chrono::seconds(5));
  f.messenger.deliver(f.a, numbered(3));
  const auto arrival = f.next();
  REQUIRE(arrival.has_value());
  CHECK(arrival->delivery.peer == f.a);
  CHECK(arrival->delivery.packet.envelope.write().first() == 3);
  CHECK(arrival->arrived == f.clock.now());
  CHECK(!f.next());
}

TEST_CASE("a peer with a hundred expensive requests waiting delays another's one by no more than its turn") {
  Fixture f;
  for (std::uint64_t i = 0; i < 100; ++i) f.messenger.deliver(f.a, read_request(i));
  f.messenger.deliver(f.b, read_request(0));
  CHECK(f.order(5, 4u << 20) == "abaaa");
  f.messenger.deliver(f.b, read_request(1));
  CHECK(f.order(2, 4u << 20) == "ba");
}

TEST_CASE("one that asks for one expensive thing after the other lets others go first") {
  Fixture f;
  f.messenger.deliver(f.a, read_request(0));
  CHECK(f.order(1, 4u << 20) == "a");
  f.messenger.deliver(f.a, read_request(1));
  f.messenger.deliver(f.b, read_request(0));
  f.messenger.deliver(f.b, read_request(1));
  CHECK(f.order(3, 4u << 20) == "bba");
  CHECK(!f.next());  // nobody waits: nobody owes
  f.messenger.deliver(f.a, read_request(2));
  f.messenger.deliver(f.b, read_request(2));
  CHECK(f.order(2, 4u << 20) == "ab");
}

TEST_CASE("answers do not wait for requests") {
  Fixture f;
  for (std::uint64_t i = 0; i < 10; ++i) f.messenger.deliver(f.a, numbered(i));
  CHECK(f.order(2) == "aa");
  Packet answer;
  answer.envelope.set_id(9);
  answer.envelope.mutable_done();
  f.messenger.deliver(f.b, std::move(answer));
  must(f.turns.take_in(Time::min()));
  CHECK(f.next()->delivery.packet.envelope.has_done());
  CHECK(f.order(8) == "aaaaaaaa");
}

TEST_CASE("of a peer that has closed its connection reads are dropped, and changes come before its end") {
  Fixture f;
  f.messenger.deliver(f.b, numbered(0));
  f.messenger.deliver(f.a, numbered(1));
  f.messenger.deliver(f.a, read_request(2));
  f.messenger.deliver(f.a, numbered(3));
  f.messenger.close(f.a);
  CHECK(f.next()->delivery.peer == f.b);
  CHECK(f.next()->delivery.packet.envelope.write().first() == 1);
  CHECK(f.next()->delivery.packet.envelope.write().first() == 3);
  const auto end = f.next();
  REQUIRE(end.has_value());
  CHECK(end->delivery.kind == Delivery::Kind::kClosed);
  CHECK(!f.next());
}

TEST_CASE("what a peer sends far past its credit is refused, and others are served as before") {
  Fixture f;
  std::vector<PeerId> refused;
  f.messenger.on_send = [&](PeerId peer, const Packet& packet) {
    CHECK(packet.envelope.error().code() == static_cast<std::uint32_t>(Code::kBusy));
    CHECK(packet.envelope.id() > 0);
    refused.push_back(peer);
  };
  SECTION("in requests") {
    for (std::uint64_t i = 0; i < Turns::kPeerRequestsMax + 10; ++i) f.messenger.deliver(f.a, numbered(i));
  }
  SECTION("in bytes") {
    for (std::uint64_t i = 0; i < 40; ++i) f.messenger.deliver(f.a, numbered(i, 1u << 20));
  }
  f.messenger.deliver(f.b, numbered(0));
  for (int i = 0; i < 20; ++i) must(f.turns.take_in(Time::min()));
  CHECK(refused.size() >= 10);
  CHECK(refused == std::vector<PeerId>(refused.size(), f.a));
  CHECK(f.order(2) == "ab");
}

TEST_CASE("what all have waiting is bounded: more is not read before something is handed out") {
  Fixture f;
  for (std::uint64_t i = 0; i < 20; ++i) f.messenger.deliver(f.a, numbered(i, 1u << 20));
  for (std::uint64_t i = 0; i < 20; ++i) f.messenger.deliver(f.b, numbered(i, 1u << 20));
  for (int i = 0; i < 3; ++i) must(f.turns.take_in(Time::min()));
  proto::StatsReply stats;
  f.turns.describe(stats);
  std::uint64_t bytes = 0;
  for (const auto& peer : stats.peers()) bytes += peer.waiting_bytes();
  CHECK(bytes <= Turns::kBytesMax + (2u << 20));
  CHECK(f.order(40).size() == 40);  // all come in the end
}

TEST_CASE("who waits is told, the longest queue first, with its program, user and what it has got so far") {
  Fixture f;
  f.turns.introduce(f.a, "pif-get[811]", 1000);
  f.turns.charge(f.a, 5000);
  f.messenger.deliver(f.b, numbered(0));
  f.messenger.deliver(f.b, numbered(1));
  for (std::uint64_t i = 0; i < 3; ++i) f.messenger.deliver(f.a, numbered(i, 100));
  for (int i = 0; i < 2; ++i) must(f.turns.take_in(Time::min()));
  proto::StatsReply stats;
  f.turns.describe(stats);
  CHECK(stats.peers_waiting() == 2);
  REQUIRE(stats.peers_size() == 2);
  CHECK(stats.peers(0).program() == "pif-get[811]");
  CHECK(stats.peers(0).uid() == 1000);
  CHECK(stats.peers(0).waiting() == 3);
  CHECK(stats.peers(0).waiting_bytes() >= 300);
  CHECK(stats.peers(0).served_bytes() == 5000);
  CHECK(stats.peers(1).program().empty());
  CHECK(stats.peers(1).waiting() == 2);
}

TEST_CASE("two ZeroMQ peers are served in turn, and one over a Unix socket is a third, not half") {
  const TempFolder folder;
  MessengerOptions options;
  options.listen.ipc = "ipc://" + (folder / "d.ipc");
  options.listen.unix_path = folder / "d.sock";
  const auto daemon = make_messenger(options);
  Turns turns(*daemon, "lfs0");
  std::vector<std::unique_ptr<Messenger>> clients;
  for (const Route route : {Route::kIpc, Route::kIpc, Route::kUnix}) {
    clients.push_back(make_messenger());
    const PeerId to = must(clients.back()->connect(listening(*daemon), route));
    for (std::uint64_t i = 0; i < 20; ++i) must(clients.back()->send(to, numbered(i)));
  }
  const auto count = [&] {
    proto::StatsReply stats;
    turns.describe(stats);
    std::uint64_t out = 0;
    for (const auto& peer : stats.peers()) out += peer.waiting();
    return out;
  };
  while (count() < 60) must(turns.take_in(SystemClock().now() + kPatience));
  std::vector<PeerId> order;
  for (int i = 0; i < 60; ++i) order.push_back(must(turns.receive(Time::min()))->delivery.peer);
  for (std::size_t i = 3; i < order.size(); ++i) CHECK(order[i] == order[i % 3]);
  CHECK(std::set<PeerId>(order.begin(), order.end()).size() == 3);
}

}  // namespace
}  // namespace pif::net
