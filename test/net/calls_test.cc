// Calls and Caller against a transport that only keeps what it is given, in virtual time.
#include "pif/net/calls.h"

#include <deque>

#include <catch2/catch.hpp>

#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/net/caller.h"

using namespace pif;
using namespace pif::net;
using namespace std::chrono_literals;

namespace {

class HandClock final : public Clock {
 public:
  Time now() const override { return time; }
  std::int64_t wall_seconds() const override { return 0; }
  Time time{1000s};
};

// Sends into a list. receive() gives what the test has put in, or lets the time pass until the deadline.
class FakeMessenger final : public Messenger {
 public:
  Result<PeerId> connect(const proto::Endpoints&, Route) override { return PeerId{1}; }
  Result<PeerId> adopt(Handle) override { return PeerId{1}; }
  void disconnect(PeerId) override {}
  Status send(PeerId peer, Packet packet) override {
    if (broken) return fail(Code::kUnavailable, "the peer has closed the connection");
    sent.emplace_back(peer, std::move(packet));
    return {};
  }
  Result<std::optional<Delivery>> receive(Time deadline) override {
    if (interrupted) return fail(Code::kCancelled, "interrupted");
    if (incoming.empty()) {
      REQUIRE(deadline != kNever);  // would wait for ever
      hand.time = std::max(hand.time, deadline);
      return std::nullopt;
    }
    auto [after, delivery] = std::move(incoming.front());
    if (hand.time + after > deadline) {
      incoming.front().first -= deadline - hand.time;
      incoming.front().second = std::move(delivery);
      hand.time = deadline;
      return std::nullopt;
    }
    incoming.pop_front();
    hand.time += after;
    return std::move(delivery);
  }
  const Identity& identity(PeerId) const override { return nobody; }
  void wake() override {}
  Clock& clock() override { return hand; }

  HandClock hand;
  Identity nobody;
  bool broken = false;
  bool interrupted = false;
  std::vector<std::pair<PeerId, Packet>> sent;
  std::deque<std::pair<Duration, Delivery>> incoming;  // after waiting that long
};

Packet request() {
  Packet out;
  out.envelope.mutable_nodes();
  return out;
}

Delivery packet_from(PeerId peer, std::uint64_t id) {
  Delivery out;
  out.peer = peer;
  out.packet.envelope.set_version(kProtocolVersion);
  out.packet.envelope.set_id(id);
  return out;
}
Delivery done(PeerId peer, std::uint64_t id) {
  auto out = packet_from(peer, id);
  out.packet.envelope.mutable_nodes_reply();
  return out;
}
Delivery working(PeerId peer, std::uint64_t id) {
  auto out = packet_from(peer, id);
  out.packet.envelope.set_working(true);
  return out;
}
Delivery closed(PeerId peer) {
  Delivery out;
  out.kind = Delivery::Kind::kClosed;
  out.peer = peer;
  return out;
}

// What on_reply was given, by call.
struct Answers {
  Calls::OnReply into(int which) {
    return [this, which](Result<Packet> result) {
      REQUIRE(!codes.contains(which));
      codes[which] = result ? Code::kOk : result.error().code;
      if (!result) texts[which] = result.error().to_string();
    };
  }
  std::map<int, Code> codes;
  std::map<int, std::string> texts;
};

}  // namespace

TEST_CASE("a call fills in version, id and timeout, and keeps an id that is set") {
  FakeMessenger messenger;
  Calls calls(messenger, 40);
  REQUIRE(calls.start(1, request(), 1500ms, "a", [](Result<Packet>) {}) == 40);
  auto again = request();
  again.envelope.set_id(17);
  REQUIRE(calls.start(1, std::move(again), 1us, "a", [](Result<Packet>) {}) == 17);
  auto taken = request();
  taken.envelope.set_id(17);  // under way already
  REQUIRE(calls.start(1, std::move(taken), 1s, "a", [](Result<Packet>) {}) == 41);
  REQUIRE(messenger.sent[0].second.envelope.version() == kProtocolVersion);
  REQUIRE(messenger.sent[0].second.envelope.id() == 40);
  REQUIRE(messenger.sent[0].second.envelope.timeout_ms() == 1500);
  REQUIRE(messenger.sent[1].second.envelope.timeout_ms() == 1);
}

TEST_CASE("replies find their calls by id and peer; late and foreign ones are swallowed, requests are not") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  const auto first = calls.start(1, request(), 3s, "a", answers.into(1));
  const auto second = calls.start(2, request(), 3s, "b", answers.into(2));
  auto foreign = done(2, first);
  REQUIRE(calls.offer(foreign));
  REQUIRE(answers.codes.empty());
  auto reply = done(2, second);
  REQUIRE(calls.offer(reply));
  REQUIRE(answers.codes == std::map<int, Code>{{2, Code::kOk}});
  auto late = done(2, second);
  REQUIRE(calls.offer(late));
  auto question = packet_from(1, first);
  question.packet.envelope.mutable_stat();
  REQUIRE(!calls.offer(question));
  Delivery wake;
  wake.kind = Delivery::Kind::kWake;
  REQUIRE(!calls.offer(wake));
  REQUIRE(calls.under_way() == 1);
}

TEST_CASE("an error in the envelope arrives as an error that names the daemon") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  const auto id = calls.start(1, request(), 3s, "lfs3", answers.into(1));
  proto::Envelope asked;
  asked.set_id(id);
  Delivery delivery;
  delivery.peer = 1;
  delivery.packet = error_reply(asked, {Code::kNoSpace, "the disk is full", {}}, "");
  REQUIRE(calls.offer(delivery));
  REQUIRE(answers.codes[1] == Code::kNoSpace);
  REQUIRE(answers.texts[1] == "lfs3: the disk is full");
}

TEST_CASE("a call ends at its timeout, whatever the peer says meanwhile") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  const auto id = calls.start(1, request(), 2s, "a", answers.into(1));
  REQUIRE(calls.next_deadline() == Time(1002s));
  messenger.hand.time += 1s;
  auto still = working(1, id);
  REQUIRE(calls.offer(still));
  messenger.hand.time += 1s;
  calls.expire();
  REQUIRE(answers.codes[1] == Code::kTimeout);
  REQUIRE(answers.texts[1] == "a did not answer within 2 s");
  REQUIRE(calls.next_deadline() == kNever);
}

TEST_CASE("a call that has no time left is not sent, and its error has no negative duration") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  calls.start(1, request(), -7200us, "lfs1", answers.into(1));
  calls.start(1, request(), Duration::zero(), "lfs1", answers.into(2));
  CHECK(messenger.sent.empty());
  calls.expire();
  CHECK(answers.codes == std::map<int, Code>{{1, Code::kTimeout}, {2, Code::kTimeout}});
  CHECK(answers.texts[1] == "the time for it was up before lfs1 could be asked");
  CHECK(answers.texts[2] == answers.texts[1]);
  CHECK(calls.under_way() == 0);
}

TEST_CASE("a peer that says nothing is given up after eight seconds, however long the timeout") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  calls.start(1, request(), 1h, "lfs1", answers.into(1));
  messenger.hand.time += kSilenceMax - 1ns;
  calls.expire();
  REQUIRE(answers.codes.empty());
  messenger.hand.time += 1ns;
  calls.expire();
  REQUIRE(answers.codes[1] == Code::kTimeout);
  REQUIRE_THAT(answers.texts[1], Catch::Contains("lfs1 has said nothing for 8 s"));
}

TEST_CASE("who was stopped itself reads what came meanwhile before anybody is given up") {
  FakeMessenger messenger;
  Caller caller(messenger, 1);
  const auto answered = caller.start(1, request(), 3s, "a");
  const auto silent = caller.start(2, request(), 1h, "b");
  messenger.incoming.emplace_back(0s, done(1, answered));
  messenger.hand.time += 20s;  // stopped
  REQUIRE(caller.wait(answered));
  const Time before = messenger.hand.time;
  const auto lost = caller.wait(silent);
  REQUIRE(lost.error().code == Code::kTimeout);
  REQUIRE_THAT(lost.error().text, Catch::Contains("b has said nothing for 8 s"));
  REQUIRE(messenger.hand.time - before == kCameLate);
}

TEST_CASE("any sign of life renews the patience with all calls of that peer, and of no other") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  const auto slow = calls.start(1, request(), 1h, "slow", answers.into(1));
  const auto other = calls.start(1, request(), 1h, "slow", answers.into(2));
  calls.start(2, request(), 1h, "silent", answers.into(3));
  for (int i = 0; i < 10; ++i) {
    messenger.hand.time += 1s;
    auto sign = working(1, slow);
    REQUIRE(calls.offer(sign));
    calls.expire();
  }
  REQUIRE(answers.codes == std::map<int, Code>{{3, Code::kTimeout}});
  auto reply = done(1, other);
  REQUIRE(calls.offer(reply));
  messenger.hand.time += kSilenceMax;
  calls.expire();
  REQUIRE(answers.codes[1] == Code::kTimeout);
}

TEST_CASE("a lost peer fails its calls at once, and is left for others to see") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  calls.start(1, request(), 1h, "gone", answers.into(1));
  calls.start(1, request(), 1h, "gone", answers.into(2));
  calls.start(2, request(), 1h, "here", answers.into(3));
  auto end = closed(1);
  REQUIRE(!calls.offer(end));
  REQUIRE(answers.codes == std::map<int, Code>{{1, Code::kUnavailable}, {2, Code::kUnavailable}});
  REQUIRE_THAT(answers.texts[1], Catch::Contains("gone"));
  REQUIRE(calls.under_way() == 1);
}

TEST_CASE("a request that cannot be sent fails from expire, never from start") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  messenger.broken = true;
  calls.start(1, request(), 1h, "gone", answers.into(1));
  const auto forgotten = calls.start(1, request(), 1h, "gone", answers.into(2));
  calls.forget(forgotten);
  REQUIRE(answers.codes.empty());
  REQUIRE(calls.next_deadline() <= messenger.hand.time);
  calls.expire();
  REQUIRE(answers.codes == std::map<int, Code>{{1, Code::kUnavailable}});
  REQUIRE_THAT(answers.texts[1], Catch::Contains("cannot send to gone"));
}

TEST_CASE("an answer may start and forget calls") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  CallId second = 0;
  calls.start(1, request(), 1s, "a", [&](Result<Packet>) {
    calls.forget(second);
    calls.start(1, request(), 1s, "a", answers.into(3));
  });
  second = calls.start(1, request(), 1s, "a", answers.into(2));
  auto end = closed(1);
  calls.offer(end);
  REQUIRE(answers.codes.empty());
  REQUIRE(calls.under_way() == 1);
  messenger.hand.time += 1s;
  calls.expire();
  REQUIRE(answers.codes == std::map<int, Code>{{3, Code::kTimeout}});
}

TEST_CASE("waiting for one call keeps the replies to others") {
  FakeMessenger messenger;
  Caller caller(messenger, 1);
  const auto first = caller.start(1, request(), 3s, "a");
  const auto second = caller.start(1, request(), 3s, "a");
  messenger.incoming.emplace_back(1s, done(1, second));
  messenger.incoming.emplace_back(1s, done(1, first));
  REQUIRE(caller.wait(first));
  REQUIRE(caller.is_done(second));
  REQUIRE(caller.wait(second));
  REQUIRE(caller.wait(second).error().code == Code::kInternal);  // once only
}

TEST_CASE("a request that is sent again with its id is not answered by what became of it before") {
  FakeMessenger messenger;
  Caller caller(messenger, 1);
  const auto first = caller.start(1, request(), 3s, "a");
  Packet same = request();
  same.envelope.set_id(first);
  messenger.incoming.emplace_back(0s, closed(1));
  REQUIRE(caller.pump(kNever));
  REQUIRE(caller.is_done(first));  // and nobody waits for it
  REQUIRE(caller.start(1, std::move(same), 3s, "a") == first);
  REQUIRE(!caller.is_done(first));
  messenger.incoming.emplace_back(1s, done(1, first));
  REQUIRE(caller.wait(first));
}

TEST_CASE("a silent peer costs a caller eight seconds") {
  FakeMessenger messenger;
  Caller caller(messenger, 1);
  const Time before = messenger.hand.time;
  REQUIRE(caller.call(1, request(), 30s, "lfs1").error().code == Code::kTimeout);
  REQUIRE(messenger.hand.time - before == kSilenceMax);
}

TEST_CASE("what nobody asked for goes to the one who takes it, and pump returns then") {
  FakeMessenger messenger;
  std::vector<Delivery::Kind> unasked;
  Caller caller(messenger, 1, [&](Delivery& delivery) { unasked.push_back(delivery.kind); });
  const auto call = caller.start(1, request(), 30s, "a");
  auto question = packet_from(1, 99);
  question.packet.envelope.mutable_worker_mail();
  messenger.incoming.emplace_back(0s, std::move(question));
  REQUIRE(caller.pump(kNever));
  REQUIRE(unasked.size() == 1);
  REQUIRE(!caller.is_done(call));
  messenger.incoming.emplace_back(0s, done(1, call));
  REQUIRE(caller.pump(kNever));
  REQUIRE(caller.is_done(call));
  REQUIRE(caller.pump(messenger.hand.time + 1s));
  REQUIRE(unasked.size() == 1);
}

TEST_CASE("an answer to another request than the one that was asked fails the call by name") {
  FakeMessenger messenger;
  Calls calls(messenger);
  Answers answers;
  const CallId call = calls.start(1, request(), 30s, "server", answers.into(1));
  auto wrong = packet_from(1, call);
  wrong.packet.envelope.mutable_done();
  REQUIRE(calls.offer(wrong));
  CHECK(answers.codes.at(1) == Code::kInternal);
  CHECK(answers.texts.at(1).find("Nodes was answered with something else than NodesReply") != std::string::npos);
  CHECK(answers.texts.at(1).find("server") != std::string::npos);
}

TEST_CASE("a call by type gives the reply's message, or its error") {
  FakeMessenger messenger;
  Caller caller(messenger, 1);
  auto reply = packet_from(1, 1);
  reply.packet.envelope.mutable_nodes_reply()->set_files(5);
  messenger.incoming.emplace_back(0s, std::move(reply));
  CHECK(caller.call(1, proto::Nodes(), 30s, "server").value().files() == 5);
  messenger.incoming.emplace_back(0s, closed(1));
  CHECK(caller.call(1, proto::Nodes(), 30s, "server").error().code == Code::kUnavailable);
}

TEST_CASE("an interrupt ends a wait") {
  FakeMessenger messenger;
  Caller caller(messenger, 1);
  messenger.interrupted = true;
  REQUIRE(caller.call(1, request(), 30s, "a").error().code == Code::kCancelled);
}
