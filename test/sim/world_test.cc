// The simulated world itself: what it promises to the tests that live in it.
#include "sim/world.h"

#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "pif/net/caller.h"

using namespace pif;
using namespace pif::sim;
using namespace std::chrono_literals;

namespace {

proto::Endpoints at(const std::string& name) {
  proto::Endpoints out;
  out.set_unix_path("sim:" + name);
  out.set_ipc("sim:" + name);
  return out;
}

net::Packet question(std::uint64_t number) {
  net::Packet out;
  out.envelope.mutable_length()->set_file(number);
  return out;
}

void serve_echo(Actor& self) {
  for (;;) {
    auto delivery = self.messenger().receive(kNever);
    if (!delivery) return;
    if (!*delivery || (*delivery)->kind != net::Delivery::Kind::kPacket) continue;
    auto& packet = (*delivery)->packet;
    net::Packet reply = net::reply_to(packet.envelope);
    reply.envelope.mutable_length_reply()->set_generation(packet.envelope.length().file());
    reply.body = std::move(packet.body);
    reply.handles = std::move(packet.handles);
    (void)self.messenger().send((*delivery)->peer, std::move(reply));
  }
}

net::PeerId connect(Actor& self, const std::string& name, net::Route route = net::Route::kAuto) {
  auto peer = self.messenger().connect(at(name), route);
  REQUIRE(peer);
  return *peer;
}

// Three clients ask one server ten times each; the order in which it is asked.
std::string story(std::uint64_t seed, std::uint64_t* history = nullptr) {
  std::string order;
  World world(seed);
  world.spawn("server", serve_echo);
  for (int i = 0; i < 3; ++i) {
    world.spawn_main(fmt::format("client{}", i), [&order, i](Actor& self) {
      net::Caller caller(self.messenger(), 1);
      const auto peer = connect(self, "server");
      for (int n = 0; n < 10; ++n) {
        REQUIRE(caller.call(peer, question(1), 5s, "server"));
        order += static_cast<char>('a' + i);
      }
    });
  }
  world.run();
  if (history != nullptr) *history = world.history();
  return order;
}

}  // namespace

TEST_CASE("the same seed gives the same history, and other seeds give others") {
  std::vector<std::string> stories;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    const auto once = story(seed, &first);
    REQUIRE(once == story(seed, &second));
    REQUIRE(first == second);
    stories.push_back(once);
  }
  std::sort(stories.begin(), stories.end());
  REQUIRE(std::unique(stories.begin(), stories.end()) == stories.end());
}

TEST_CASE("deadlines come in their order, and waiting takes no real time") {
  World world(1);
  std::string order;
  const auto sleeper = [&order](char name, Duration wait) {
    return [&order, name, wait](Actor& self) {
      const Time until = self.clock().now() + wait;
      auto got = self.messenger().receive(until);
      REQUIRE(got);
      REQUIRE(!*got);
      REQUIRE(self.clock().now() >= until);
      order += name;
    };
  };
  world.spawn_main("c", sleeper('c', 3h));
  world.spawn_main("a", sleeper('a', 1s));
  world.spawn_main("b", sleeper('b', 2min));
  world.run();
  REQUIRE(order == "abc");
}

TEST_CASE("packets of one peer arrive in the order in which they were sent") {
  const auto seed = GENERATE(range(1u, 20u));
  World world(seed);
  std::vector<std::uint64_t> seen;
  world.spawn_main("receiver", [&](Actor& self) {
    while (seen.size() < 50) {
      auto delivery = self.messenger().receive(kNever);
      REQUIRE(delivery);
      seen.push_back((*delivery)->packet.envelope.length().file());
    }
  });
  world.spawn("sender", [](Actor& self) {
    const auto peer = connect(self, "receiver");
    for (std::uint64_t i = 0; i < 50; ++i) REQUIRE(self.messenger().send(peer, question(i)));
    self.pause(1h);
  });
  world.run();
  REQUIRE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("when everybody waits for ever the run fails and says who waits") {
  World world(3);
  world.spawn_main("lonely", [](Actor& self) { (void)self.messenger().receive(kNever); });
  REQUIRE_THROWS_WITH(world.run(), Catch::Contains("deadlock") && Catch::Contains("lonely waits for ever"));
}

TEST_CASE("a run that does not end fails after its steps") {
  World world(3, Options{.steps_max = 1000});
  world.spawn_main("busy", [](Actor& self) {
    while (self.messenger().receive(Time{})) continue;
  });
  REQUIRE_THROWS_WITH(world.run(), Catch::Contains("no end after 1000 steps"));
}

TEST_CASE("what an actor throws fails the run") {
  World world(3);
  world.spawn_main("thrower", [](Actor&) { throw std::runtime_error("out of luck"); });
  REQUIRE_THROWS_WITH(world.run(), "out of luck");
}

TEST_CASE("killing an actor closes its connections, fails what it waits for, and frees its name") {
  World world(7);
  const ActorId victim = world.spawn("server", serve_echo);
  world.spawn_main("client", [&](Actor& self) {
    net::Caller caller(self.messenger(), 1);
    auto peer = connect(self, "server");
    REQUIRE(caller.call(peer, question(1), 5s, "server"));
    const auto pending = caller.start(peer, question(2), 5s, "server");
    self.world().kill(victim);
    REQUIRE(!self.world().is_alive(victim));
    const auto reply = caller.wait(pending);
    REQUIRE(!reply);
    REQUIRE(reply.error().code == Code::kUnavailable);
    REQUIRE(!self.messenger().connect(at("server"), net::Route::kAuto));
    self.world().spawn("server", serve_echo);
    peer = connect(self, "server");
    REQUIRE(caller.call(peer, question(3), 5s, "server"));
  });
  world.run();
}

TEST_CASE("over the ZeroMQ-like route a dead peer is silence, and a restarted one is reached again") {
  World world(8);
  const ActorId victim = world.spawn("server", serve_echo);
  world.spawn_main("client", [&](Actor& self) {
    net::Caller caller(self.messenger(), 1);
    const auto peer = connect(self, "server", net::Route::kIpc);
    REQUIRE(caller.call(peer, question(1), 5s, "server"));
    self.world().kill(victim);
    const auto reply = caller.call(peer, question(2), 30s, "server");
    REQUIRE(!reply);
    REQUIRE(reply.error().code == Code::kTimeout);
    self.world().spawn("server", serve_echo);
    REQUIRE(caller.call(peer, question(3), 5s, "server"));
  });
  world.run();
}

TEST_CASE("handles travel as objects, and the kernel's place is taken by what spawn said of the user") {
  World world(9);
  world.spawn("server", serve_echo);
  world.spawn_main(
      "client",
      [](Actor& self) {
        net::Caller caller(self.messenger(), 1);
        const auto peer = connect(self, "server");
        REQUIRE(self.messenger().identity(peer).uid == 1000);
        net::Packet request = question(1);
        request.handles.push_back({{}, std::make_shared<int>(42)});
        auto reply = caller.call(peer, std::move(request), 5s, "server");
        REQUIRE(reply);
        REQUIRE(reply->handles.size() == 1);
        REQUIRE(*static_cast<int*>(reply->handles[0].object.get()) == 42);
      },
      Who{77, {7, 8}});
  world.run();
}

TEST_CASE("the ends of a pair connect who adopts them, and one that is dropped closes the other") {
  World world(10);
  auto [first, second] = world.make_pair();
  auto shared = std::make_shared<Handle>(std::move(second));
  world.spawn("server", [shared](Actor& self) {
    REQUIRE(self.messenger().adopt(std::move(*shared)));
    serve_echo(self);
  });
  auto mine = std::make_shared<Handle>(std::move(first));
  world.spawn_main("client", [mine](Actor& self) {
    net::Caller caller(self.messenger(), 1);
    auto peer = self.messenger().adopt(std::move(*mine));
    REQUIRE(peer);
    REQUIRE(caller.call(*peer, question(5), 5s, "server"));
    auto [left, right] = self.world().make_pair();
    peer = self.messenger().adopt(std::move(left));
    REQUIRE(peer);
    right = {};
    auto delivery = self.messenger().receive(kNever);
    REQUIRE(delivery);
    REQUIRE((*delivery)->kind == net::Delivery::Kind::kClosed);
    REQUIRE((*delivery)->peer == *peer);
  });
  world.run();
}

TEST_CASE("lost and doubled packets are only seen where ZeroMQ would have them") {
  World world(11, Options{.drop = 0.3, .duplicate = 0.3});
  std::size_t over_unix = 0;
  std::size_t over_ipc = 0;
  world.spawn("server", [&](Actor& self) {
    for (;;) {
      auto delivery = self.messenger().receive(kNever);
      if (!delivery) return;
      const bool is_ipc = self.messenger().identity((*delivery)->peer).via == net::Identity::Via::kIpc;
      ++(is_ipc ? over_ipc : over_unix);
    }
  });
  world.spawn_main("client", [](Actor& self) {
    const auto unix_peer = connect(self, "server");
    const auto ipc_peer = connect(self, "server", net::Route::kIpc);
    for (std::uint64_t i = 0; i < 200; ++i) {
      REQUIRE(self.messenger().send(unix_peer, question(i)));
      REQUIRE(self.messenger().send(ipc_peer, question(i)));
    }
    self.pause(10s);
  });
  world.run();
  REQUIRE(over_unix == 200);
  REQUIRE(over_ipc != 200);
}

TEST_CASE("an actor's children end with it") {
  World world(12);
  ActorId child = 0;
  const ActorId parent = world.spawn("parent", [&](Actor& self) {
    child = self.world().spawn("child", serve_echo, {}, self.id());
    serve_echo(self);
  });
  world.spawn_main("killer", [&](Actor& self) {
    self.pause(1s);
    REQUIRE(self.world().is_alive(child));
    self.world().kill(parent);
    REQUIRE(!self.world().is_alive(child));
  });
  world.run();
}

TEST_CASE("a doomed actor is cut off at once and ends at the next step") {
  World world(13);
  const ActorId victim = world.spawn("server", serve_echo);
  world.spawn_main("client", [&](Actor& self) {
    net::Caller caller(self.messenger(), 1);
    const auto peer = connect(self, "server");
    REQUIRE(caller.call(peer, question(1), 5s, "server"));
    const auto pending = caller.start(peer, question(2), 5s, "server");
    self.world().doom(victim);
    REQUIRE(!self.world().is_alive(victim));
    REQUIRE(!caller.wait(pending));
    self.world().spawn("server", serve_echo);
    REQUIRE(caller.call(connect(self, "server"), question(3), 5s, "server"));
  });
  world.run();
}

TEST_CASE("a stalled actor answers when its time is over") {
  World world(14);
  const ActorId server = world.spawn("server", serve_echo);
  world.spawn_main("client", [&](Actor& self) {
    net::Caller caller(self.messenger(), 1);
    const auto peer = connect(self, "server");
    self.world().stall(server, 3s);
    const Time before = self.clock().now();
    REQUIRE(caller.call(peer, question(1), 5s, "server"));
    REQUIRE(self.clock().now() - before >= 3s);
  });
  world.run();
}

TEST_CASE("a world whose last main actor is killed by the hook is at its end, though nobody else lives") {
  World world(1);
  const auto main = world.spawn_main("main", [](Actor& self) { (void)self.messenger().receive(kNever); });
  world.spawn("starter", [](Actor& self) { (void)self.pause(1s); });
  world.on_step([&](std::uint64_t step) {
    if (step == 3) world.kill(main);
  });
  world.run();
  CHECK(world.was_killed(main));
}

TEST_CASE("nothing passes a cut, in either direction, until it is over") {
  World world(15);
  world.spawn("server", serve_echo);
  world.spawn_main("client", [&](Actor& self) {
    net::Caller caller(self.messenger(), 1);
    const auto by_unix = connect(self, "server");
    const auto by_ipc = connect(self, "server", net::Route::kIpc);
    self.world().cut("client", "server", 4s);
    REQUIRE(!caller.call(by_ipc, question(1), 3s, "server"));
    REQUIRE(caller.call(by_unix, question(2), 3s, "server"));  // a Unix socket does not leave the machine
    self.pause(2s);
    REQUIRE(caller.call(by_ipc, question(3), 3s, "server"));
  });
  world.run();
}

TEST_CASE("a link that breaks is seen to close by both ends") {
  World world(16);
  unsigned closed = 0;
  const auto watch = [&](Actor& self, Time until) {
    for (;;) {
      auto delivery = self.messenger().receive(until);
      if (!delivery || !*delivery) return;
      closed += (*delivery)->kind == net::Delivery::Kind::kClosed ? 1 : 0;
    }
  };
  world.spawn("server", [&](Actor& self) { watch(self, kNever); });
  world.spawn_main("client", [&](Actor& self) {
    const auto peer = connect(self, "server");
    self.pause(1s);
    self.world().break_some_link();
    watch(self, self.clock().now() + 1s);
    REQUIRE(!self.messenger().send(peer, question(1)));
  });
  world.run();
  REQUIRE(closed == 2);
}

TEST_CASE("packets overtake one another where a route may reorder, and nowhere else") {
  World world(17, Options{.reorder = 0.5});
  std::map<net::PeerId, std::vector<std::uint64_t>> seen;
  net::PeerId unix_end = 0;
  world.spawn("server", [&](Actor& self) {
    for (;;) {
      auto delivery = self.messenger().receive(kNever);
      if (!delivery) return;
      const auto& identity = self.messenger().identity((*delivery)->peer);
      if (identity.via == net::Identity::Via::kSimulated) unix_end = (*delivery)->peer;
      seen[(*delivery)->peer].push_back((*delivery)->packet.envelope.length().file());
    }
  });
  world.spawn_main("client", [](Actor& self) {
    const auto unix_peer = connect(self, "server");
    const auto ipc_peer = connect(self, "server", net::Route::kIpc);
    for (std::uint64_t i = 1; i <= 100; ++i) {
      REQUIRE(self.messenger().send(unix_peer, question(i)));
      REQUIRE(self.messenger().send(ipc_peer, question(i)));
    }
    self.pause(10s);
  });
  world.run();
  REQUIRE(seen.size() == 2);
  for (const auto& [peer, ids] : seen) {
    REQUIRE(ids.size() == 100);
    REQUIRE(std::is_sorted(ids.begin(), ids.end()) == (peer == unix_end));
  }
}

TEST_CASE("between two that keep order packets come once, and none overtakes another, by whatever route") {
  World world(19, Options{.duplicate = 0.5, .reorder = 0.5});
  world.keep_order("client", "server");
  std::vector<std::uint64_t> seen;
  world.spawn("server", [&](Actor& self) {
    for (;;) {
      auto delivery = self.messenger().receive(kNever);
      if (!delivery) return;
      seen.push_back((*delivery)->packet.envelope.length().file());
    }
  });
  world.spawn_main("client", [](Actor& self) {
    const auto peer = connect(self, "server", net::Route::kIpc);
    for (std::uint64_t i = 1; i <= 100; ++i) REQUIRE(self.messenger().send(peer, question(i)));
    self.pause(10s);
  });
  world.run();
  REQUIRE(seen.size() == 100);
  REQUIRE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("an executor's work takes time, during which its actor goes on, and what is done is called back") {
  World world(18, Options{.work_max = 10ms});
  world.spawn_main("daemon", [](Actor& self) {
    bool worked = false, called = false;
    self.executor().submit([&] { worked = true; }, [&] { called = true; });
    REQUIRE(!worked);
    while (!called) {
      auto delivery = self.messenger().receive(self.clock().now() + 1s);
      REQUIRE(delivery);
      REQUIRE(*delivery);
      REQUIRE((*delivery)->kind == net::Delivery::Kind::kWake);
      REQUIRE(worked);
      self.run_done();
    }
  });
  world.run();
}
