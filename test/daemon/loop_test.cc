#include "pif/daemon/loop.h"

#include <fmt/format.h>

#include "daemon/by_hand.h"

namespace pif::daemon {
namespace {

// Notes what happens: deliveries by their ids.
struct Fixture final : test::ByHand, TurnHandler {
  void begin_turn() override { log += '('; }
  void take(net::Turns::Arrival& arrival) override {
    log += fmt::format("{}", arrival.delivery.packet.envelope.id());
    if (on_take) on_take();
  }
  bool has_room() const override { return log.size() < room; }
  Result<bool> end_turn() override {
    log += ')';
    if (failure) return fail(*failure);
    return std::exchange(is_left, false);
  }
  void deliver(std::uint64_t id) { messenger.deliver(peer, std::move(request(id).packet)); }
  Status run() {
    messenger.idle() = false;
    return loop.serve(messenger.idle());
  }

  std::string log;
  std::size_t room = SIZE_MAX;
  bool is_left = false;
  std::optional<Error> failure;
  std::function<void()> on_take;
  net::Turns turns{messenger, "daemon"};
  Loop loop{turns, fibers, *this, 3};
};

// Fails when it has given so many deliveries.
class Failing final : public net::Messenger {
 public:
  Failing(sim::FakeMessenger& inner, Code code) : inner_(inner), code_(code) {}
  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route route) override {
    return inner_.connect(to, route);
  }
  Result<net::PeerId> adopt(Handle handle) override { return inner_.adopt(std::move(handle)); }
  void disconnect(net::PeerId peer) override { inner_.disconnect(peer); }
  Status send(net::PeerId peer, net::Packet packet) override { return inner_.send(peer, std::move(packet)); }
  Result<std::optional<net::Delivery>> receive(Time deadline) override {
    PIF_TRY_VALUE(auto delivery, inner_.receive(deadline));
    if (!delivery) return fail(code_, "the end");
    return delivery;
  }
  const net::Identity& identity(net::PeerId peer) const override { return inner_.identity(peer); }
  void wake() override {}
  Clock& clock() override { return inner_.clock(); }

 private:
  sim::FakeMessenger& inner_;
  const Code code_;
};

TEST_CASE("the first turn begins at once, and each takes what is there within its bounds") {
  Fixture f;
  REQUIRE(f.run());
  CHECK(f.log == "()()");  // it would wait in the second
  for (std::uint64_t id = 1; id <= 4; ++id) f.deliver(id);
  f.log.clear();
  REQUIRE(f.run());
  CHECK(f.log == "(123)(4)()");
  for (std::uint64_t id = 1; id <= 3; ++id) f.deliver(id);
  f.log.clear();
  f.room = 3;
  REQUIRE(f.run());
  CHECK(f.log == "(12)(3)()");
}

TEST_CASE("fibers go on before the turn ends, and those that have their time begin a turn") {
  Fixture f;
  f.fibers.start([&] {
    for (;;) {
      f.fibers.sleep_until(f.clock.now() + std::chrono::seconds(10));
      f.log += 'f';
    }
  });
  REQUIRE(f.run());
  CHECK(f.log == "()()");
  f.log.clear();
  f.clock.advance(std::chrono::seconds(9));
  REQUIRE(f.run());
  CHECK(f.log == "()()");
  f.log.clear();
  f.clock.advance(std::chrono::seconds(1));
  f.deliver(1);
  REQUIRE(f.run());
  CHECK(f.log == "(1f)()");
}

TEST_CASE("a turn that leaves something is followed by another one at once") {
  Fixture f;
  f.is_left = true;
  REQUIRE(f.run());
  CHECK(f.log == "()()()");
}

TEST_CASE("an error of a turn ends the loop") {
  Fixture f;
  f.failure = Error{Code::kUnavailable, "it is lost", {}};
  CHECK(f.run().error().text == "it is lost");
  CHECK(f.log == "()");
}

TEST_CASE("where the transport fails the loop ends; what came before an interruption is handled") {
  for (const Code code : {Code::kIo, Code::kCancelled}) {
    Fixture f;
    Failing failing(f.messenger, code);
    net::Turns turns(failing, "daemon");
    Loop loop(turns, f.fibers, f, 3);
    f.deliver(1);
    const std::atomic<bool> never = false;
    const Status ended = loop.serve(never);
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == code);
    CHECK((f.log.find("1)") != std::string::npos) == (code == Code::kCancelled));
  }
}

TEST_CASE("a loop that is told to stop takes no more, but ends its turn") {
  Fixture f;
  for (std::uint64_t id = 1; id <= 2; ++id) f.deliver(id);
  std::atomic<bool> stop = false;
  f.on_take = [&] { stop = true; };
  REQUIRE(f.loop.serve(stop));
  CHECK(f.log == "(1)");
}

}  // namespace
}  // namespace pif::daemon
