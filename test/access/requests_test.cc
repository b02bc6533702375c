// Requests to LFSs of a file.
#include "pif/access/requests.h"

#include <catch2/catch.hpp>

#include "../sim/by_hand.h"

namespace pif::access {
namespace {

struct Two {
  static FileParts parts() {
    FileParts parts;
    parts.path = "/f";
    parts.layout = *parity::Layout::make(2);
    parts.nodes.resize(2);
    parts.nodes[0].set_id(1);
    parts.nodes[1].set_id(2);
    parts.capability = "somebody's";
    return parts;
  }
  static BulkRequest ask(LfsIndex lfs) {
    BulkRequest request;
    request.lfs = lfs;
    request.make = [] {
      net::Packet packet;
      packet.envelope.mutable_length();
      return packet;
    };
    return request;
  }

  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  net::Calls calls{messenger};
  LfsLinks links{messenger, calls, {net::Route::kAuto, "test", std::chrono::seconds(30)}};
  Grant grant{parts(), {}};
  Requests requests{links, grant};
};

}  // namespace

TEST_CASE("what a refused request adds is started at once, also for an LFS that has had its turn") {
  Two two;
  two.links.adopt(1, "lfs0", 11, 1 << 20);
  two.links.note_away(2);
  BulkRequest first = Two::ask(1);
  first.replaceable = true;
  first.refused = [&two](const Error&) -> Status {
    two.requests.add(Two::ask(0));
    return {};
  };
  two.requests.add(Two::ask(0));  // so that LFS 0 has a queue, and its turn first
  two.requests.add(std::move(first));
  REQUIRE(two.requests.step());
  CHECK(two.requests.size() == 2);
  CHECK(!two.requests.waits());
}

TEST_CASE("an LFS that was away is asked again after a while, however often it is passed over meanwhile") {
  Two two;
  int hellos = 0;
  two.messenger.on_send = [&](net::PeerId, const net::Packet& packet) { hellos += packet.envelope.has_hello(); };
  const auto want = [&] {
    int refused = 0;
    BulkRequest request = Two::ask(1);
    request.replaceable = true;
    request.refused = [&refused](const Error&) -> Status {
      ++refused;
      return {};
    };
    Requests requests{two.links, two.grant};
    requests.add(std::move(request));
    REQUIRE(requests.step());
    return refused == 0;
  };
  SECTION("it could not be reached") { two.links.note_away(2); }
  SECTION("the server has said that it is down") { two.links.note_said_down(2); }
  CHECK(!want());
  two.clock.advance(LfsLinks::kAwayFor / 2);
  CHECK(!want());
  two.clock.advance(LfsLinks::kAwayFor - LfsLinks::kAwayFor / 2);
  CHECK(hellos == 0);
  CHECK(want());
  CHECK(hellos == 1);
}

TEST_CASE("an LFS that answers is not away any more, and it is not said to be by who has not heard it yet") {
  Two two;
  two.links.adopt(2, "lfs1", 12, 1 << 20);
  two.links.note_said_down(2);
  CHECK(!two.links.was_away(2));
  two.links.note_away(2);
  BulkRequest request = Two::ask(1);
  two.messenger.on_send = [&](net::PeerId peer, const net::Packet& packet) {
    net::Delivery reply;
    reply.peer = peer;
    reply.packet = net::reply_to(packet.envelope);
    reply.packet.envelope.mutable_length_reply();
    two.messenger.deliver(peer, std::move(reply.packet));
  };
  two.requests.add(std::move(request));
  REQUIRE(two.requests.step());
  auto delivery = two.messenger.receive({});
  REQUIRE((delivery && *delivery));
  CHECK(two.calls.offer(**delivery));
  REQUIRE(two.requests.step());
  CHECK(two.requests.idle());
  CHECK(!two.links.has_away());
}

namespace {

// What is sent to LFS 0 of `Two`, by id and credential.
struct Sent {
  explicit Sent(Two& two_in) : two(two_in) {
    two.links.set_credential("first");
    two.links.adopt(1, "lfs0", 11, 1 << 20);
    two.messenger.on_send = [this](net::PeerId, const net::Packet& packet) {
      ids.push_back(packet.envelope.id());
      credentials.push_back(packet.envelope.credential());
    };
  }
  void answer(net::PeerId peer, Code code) {
    proto::Envelope asked;
    asked.set_id(ids.back());
    two.messenger.deliver(peer, net::error_reply(asked, {code, "no", {}}, "lfs0"));
    auto delivery = two.messenger.receive({});
    REQUIRE((delivery && *delivery));
    CHECK(two.calls.offer(**delivery));
    REQUIRE(two.requests.step());
    two.clock.advance(std::chrono::seconds(1));
    REQUIRE(two.requests.step());
  }
  void lose(net::PeerId peer, net::PeerId next) {
    net::Delivery closed;
    closed.kind = net::Delivery::Kind::kClosed;
    closed.peer = peer;
    CHECK(!two.calls.offer(closed));
    two.links.closed(peer);
    two.links.adopt(1, "lfs0", next, 1 << 20);
    REQUIRE(two.requests.step());
  }

  Two& two;
  std::vector<net::CallId> ids;
  std::vector<std::string> credentials;
};

}  // namespace

TEST_CASE("a request that was not answered is sent again as the one that it was, also once it has been refused") {
  Two two;
  Sent sent(two);
  BulkRequest request = Two::ask(0);
  request.patient = true;
  two.requests.add(std::move(request));
  REQUIRE(two.requests.step());
  two.links.set_credential("second");
  sent.lose(11, 12);
  sent.answer(12, Code::kRetry);
  REQUIRE(sent.ids.size() == 3);
  CHECK(sent.ids == std::vector<net::CallId>(3, sent.ids[0]));
  CHECK(sent.credentials == std::vector<std::string>(3, "first"));
}

TEST_CASE("a request that was refused is another one when it is sent again") {
  Two two;
  Sent sent(two);
  BulkRequest request = Two::ask(0);
  request.patient = true;
  two.requests.add(std::move(request));
  REQUIRE(two.requests.step());
  two.links.set_credential("second");
  sent.answer(11, Code::kRetry);
  REQUIRE(sent.ids.size() == 2);
  CHECK(sent.ids[0] != sent.ids[1]);
  CHECK(sent.credentials == std::vector<std::string>{"first", "second"});
}

TEST_CASE("a process that shares its session numbers its requests from where it is told") {
  Two two;
  Sent sent(two);
  two.links.count_from(1 << 24);
  for (int i = 0; i < 2; ++i) two.requests.add(Two::ask(0));
  REQUIRE(two.requests.step());
  CHECK(sent.ids == std::vector<net::CallId>{1 << 24, (1 << 24) + 1});
}

}  // namespace pif::access
