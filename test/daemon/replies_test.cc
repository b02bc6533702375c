#include "daemon/by_hand.h"
#include "pif/daemon/admission.h"
#include "pif/daemon/caller.h"

namespace pif::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture : test::ByHand {
  ~Fixture() { fibers.end_all(); }
  Request deferred(std::uint64_t id, std::uint32_t timeout_ms) {
    net::Delivery delivery = request(id, timeout_ms);
    Request out = request_of(delivery, clock.now());
    replies.defer(out);
    return out;
  }
  static net::Packet stats_of(const Request& request) {
    net::Packet packet = Replies::reply(request);
    packet.envelope.mutable_stats_reply();
    return packet;
  }
  // Ids of signs of life since this was asked last.
  std::vector<std::uint64_t> signs() {
    std::vector<std::uint64_t> out;
    for (const auto& [to, envelope] : std::exchange(sent, {}))
      if (envelope.working()) out.push_back(envelope.id());
    return out;
  }
  Replies replies{messenger, fibers, "daemon"};
};

using Ids = std::vector<std::uint64_t>;

TEST_CASE("who waits for an answer hears each second that somebody works on it, and nothing past the deadline") {
  Fixture f;
  const Request late = f.deferred(1, 2500);
  f.pass(milliseconds(500));
  const Request other = f.deferred(2, 0);
  CHECK(f.signs().empty());
  f.pass(milliseconds(500));
  CHECK(f.signs() == Ids{1});
  f.pass(milliseconds(500));
  CHECK(f.signs() == Ids{2});
  f.pass(milliseconds(500));
  CHECK(f.signs() == Ids{1});
  CHECK_FALSE(f.replies.is_dropped(late));
  f.pass(milliseconds(500));
  CHECK(f.replies.is_dropped(late));
  CHECK(f.signs() == Ids{2});
  f.replies.answer(late, Fixture::stats_of(late));
  CHECK(f.sent.empty());
  f.replies.answer(other, Fixture::stats_of(other));
  CHECK(f.sent.size() == 1);
  f.pass(seconds(10));
  CHECK(f.signs().empty());
  CHECK(f.replies.pending() == 0);
}

TEST_CASE("an answer at the moment of the deadline is sent") {
  Fixture f;
  Request request;
  f.fibers.start([&] {
    f.fibers.sleep_until(f.clock.now() + seconds(2));
    f.replies.answer(request, Fixture::stats_of(request));
  });
  request = f.deferred(1, 2000);
  f.pass(seconds(2));
  REQUIRE(f.sent.size() == 1);
  CHECK(f.sent.front().second.has_stats_reply());
}

TEST_CASE("a second of no signs is made up for by one") {
  Fixture f;
  f.deferred(1, 0);
  f.pass(seconds(7));
  CHECK(f.signs() == Ids{1});
  CHECK(f.fibers.next_deadline() == f.clock.now() + seconds(1));
}

// ---- what may not be done yet --------------------------------------------------------------------------------------

struct Waiting : Fixture {
  // How the wait of a request with so many bytes ended.
  std::shared_ptr<std::optional<Result<bool>>> wait(std::size_t bytes, Time until = kNever) {
    auto ended = std::make_shared<std::optional<Result<bool>>>();
    net::Delivery delivery = request(++last_, 60'000, bytes);
    auto asked = std::make_shared<Request>(request_of(delivery, clock.now()));
    if (!fibers.start([this, ended, asked, until] { *ended = admission.wait(*asked, until); })) replies.defer(*asked);
    return ended;
  }
  Admission admission{fibers, replies, {3, 100}, "too much"};

 private:
  std::uint64_t last_ = 0;
};

TEST_CASE("what may not be done yet waits for news, or for its time") {
  Waiting f;
  const auto first = f.wait(10), second = f.wait(10, f.clock.now() + seconds(3));
  CHECK(f.admission.waiting() == 2);
  f.pass(seconds(3));
  CHECK_FALSE(*first);
  REQUIRE(*second);
  CHECK(***second);
  f.admission.notify();
  f.fibers.run();
  REQUIRE(*first);
  CHECK(***first);
  CHECK(f.admission.waiting() == 0);
}

TEST_CASE("so many requests and so many bytes wait, and others are told that it is too much") {
  Waiting f;
  const auto large = f.wait(90);
  const auto too_large = f.wait(11);
  REQUIRE(*too_large);
  CHECK((*too_large)->error().code == Code::kBusy);
  CHECK((*too_large)->error().text == "too much");
  f.wait(10);
  f.wait(0);
  const auto fourth = f.wait(0);
  REQUIRE(*fourth);
  CHECK((*fourth)->error().code == Code::kBusy);
  f.admission.notify();
  f.fibers.run();
  CHECK(*large);
  CHECK_FALSE(*f.wait(100));
}

TEST_CASE("a request whose peer is gone does not go on") {
  Waiting f;
  const auto gone = f.wait(10);
  f.replies.drop_peer(f.peer);
  f.admission.notify();
  f.fibers.run();
  REQUIRE(*gone);
  CHECK_FALSE(***gone);
}

// ---- calls of others -----------------------------------------------------------------------------------------------

struct Calling : test::ByHand {
  ~Calling() { fibers.end_all(); }
  void call(Duration timeout) {
    fibers.start([this, timeout] {
      net::Packet packet;
      packet.envelope.mutable_stats();
      ended = caller.call(peer, std::move(packet), timeout, "the other");
    });
  }
  std::optional<Result<net::Packet>> ended;
  Caller caller{messenger, fibers};
};

TEST_CASE("a call returns what the other answers, whoever else makes calls") {
  Calling f;
  f.call(seconds(5));
  REQUIRE(f.sent.size() == 1);
  net::Delivery reply = f.request(f.sent.front().second.id());
  reply.packet.envelope.mutable_stats_reply()->set_node("other");
  CHECK(f.caller.offer(reply));
  f.fibers.run();
  REQUIRE(f.ended);
  REQUIRE(*f.ended);
  CHECK((*f.ended)->envelope.stats_reply().node() == "other");
  CHECK_FALSE(f.caller.offer(reply = f.request(7)));  // a request is not an answer
}

TEST_CASE("a call that is not answered ends by its time, and one of a peer that is gone at once") {
  Calling f;
  f.call(seconds(5));
  f.pass(seconds(4));
  CHECK_FALSE(f.ended);
  f.pass(seconds(1));
  REQUIRE(f.ended);
  CHECK(f.ended->error().code == Code::kTimeout);
  f.ended.reset();
  f.call(seconds(5));
  net::Delivery gone = f.closed();
  CHECK_FALSE(f.caller.offer(gone));  // others must hear of it, too
  f.fibers.run();
  REQUIRE(f.ended);
  CHECK(f.ended->error().code == Code::kUnavailable);
}

TEST_CASE("a call without any time left is not sent, and ends at once") {
  Calling f;
  f.call(Duration::zero());
  f.fibers.run();
  CHECK(f.sent.empty());
  REQUIRE(f.ended);
  CHECK(f.ended->error().code == Code::kTimeout);
}

TEST_CASE("who works with calls hears that one has ended") {
  Calling f;
  unsigned heard = 0;
  f.fibers.start([&] {
    for (;; ++heard) f.caller.news().wait();
  });
  f.call(seconds(5));
  f.fibers.run();
  CHECK(heard == 0);
  f.pass(seconds(5));
  CHECK(heard == 1);
}

}  // namespace
}  // namespace pif::daemon
