#include "../../lfs/src/worker_host.h"

#include <catch2/catch.hpp>

#include <set>

#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/net/caller.h"
#include "sim/world.h"

namespace pif::lfs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Processes that do nothing until they are killed.
class IdleSpawner final : public Spawner {
 public:
  explicit IdleSpawner(sim::World& world) : world_(world) {}

  Result<Started> start(const Order& order) override {
    orders.push_back(order);
    auto [ours, theirs] = world_.make_pair();
    ends_.push_back(std::move(theirs));
    running.insert(++last_);
    return Started{last_, std::move(ours)};
  }
  void kill(ProcessId process) override { killed.insert(process); }
  std::optional<WorkerExit> exited(ProcessId process) override {
    if (!killed.contains(process)) return std::nullopt;
    running.erase(process);
    return WorkerExit{true, 9, {}};
  }

  Handle take_end(std::size_t i) { return std::move(ends_[i]); }

  std::vector<Order> orders;
  std::set<ProcessId> running;
  std::set<ProcessId> killed;

 private:
  sim::World& world_;
  std::vector<Handle> ends_;
  ProcessId last_ = 0;
};

// A worker host in an actor of its own, and a client that asks it.
struct Host {
  explicit Host(std::uint32_t uid) { config.uid = uid; config.name = "lfs0"; config.endpoints.set_unix("sim:host"); }

  void run(sim::Who who, const std::function<void(sim::Actor&, net::Caller&, net::PeerId)>& client) {
    world.spawn("host", [this](sim::Actor& self) { serve(self); }, sim::Who{config.uid, {config.uid}});
    world.spawn_main("client", [&](sim::Actor& self) {
      net::Caller caller(self.messenger(), 1);
      proto::Endpoints to;
      to.set_unix("sim:host");
      auto peer = self.messenger().connect(to, net::Route::kUnix);
      REQUIRE(peer);
      client(self, caller, *peer);
    }, std::move(who));
    world.run();
    if (const auto host = world.find("host")) world.kill(*host);  // before the spawner goes
  }

  void serve(sim::Actor& self) {
    auto storage = component::make_memory_storage(component::MemoryDisk::make());
    auto catalogue = kv::open_memory(kv::make_memory_state(2));
    InlineExecutor executor;
    WorkerHost host(config, World{self.messenger(), *storage, *catalogue, executor, spawner, self.entropy(), {}},
                    [&](net::PeerId peer, net::Packet packet, int, Time) {
                      (void)self.messenger().send(peer, std::move(packet));
                    });
    while (true) {
      auto delivery = self.messenger().receive(host.next_deadline());
      if (!delivery) return;
      if (*delivery) host.handle(**delivery);
      host.tick();
    }
  }

  sim::World world{1};
  Config config;
  IdleSpawner spawner{world};
};

net::Packet spawn(std::uint64_t job, const std::string& program = "/bin/tool") {
  net::Packet packet;
  packet.envelope.mutable_spawn()->set_job(job);
  packet.envelope.mutable_spawn()->set_program(program);
  packet.envelope.mutable_spawn()->set_fan_out(8);
  return packet;
}

net::Packet wait(std::uint64_t job) {
  net::Packet packet;
  packet.envelope.mutable_job_wait()->set_job(job);
  packet.envelope.mutable_job_wait()->set_hold_ms(500);
  return packet;
}

TEST_CASE("a job lives as long as its controller asks about it, and is killed soon after it stops") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    for (int i = 0; i < 10; ++i) REQUIRE(caller.call(peer, wait(7), seconds(5), "host"));
    REQUIRE(host.spawner.running.size() == 1);
    self.pause(milliseconds(1900));
    REQUIRE(host.spawner.running.empty());
  });
}

TEST_CASE("a job that is not known is early as long as its spawn has no answer, and lost afterwards") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    net::Packet later = wait(7);
    later.envelope.mutable_job_wait()->set_started(true);
    REQUIRE(caller.call(peer, net::Packet{later.envelope, {}, {}}, seconds(5), "host"));
    self.pause(seconds(20));  // the lease ends, and then the memory of it
    const auto lost = caller.call(peer, net::Packet{later.envelope, {}, {}}, seconds(5), "host");
    REQUIRE(!lost);
    REQUIRE(lost.error().code == Code::kCancelled);
    REQUIRE(lost.error().text.find("not known here any more") != std::string::npos);
  });
}

TEST_CASE("a host without root's rights refuses the workers of other users, and says why") {
  Host host(1000);
  host.run({1001, {1001}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    const auto refused = caller.call(peer, spawn(7), seconds(5), "host");
    REQUIRE(!refused);
    REQUIRE(refused.error().code == Code::kPermission);
    REQUIRE(refused.error().text.find("uid 1001") != std::string::npos);
    REQUIRE(host.spawner.orders.empty());
  });
}

TEST_CASE("a host with root's rights starts a worker as the user who asks") {
  Host host(0);
  host.run({1001, {1001, 27}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    REQUIRE(host.spawner.orders.size() == 1);
    REQUIRE(host.spawner.orders[0].uid == 1001);
    REQUIRE(host.spawner.orders[0].gids == std::vector<std::uint32_t>{1001, 27});
  });
}

TEST_CASE("nobody may wait for, or kill, another user's job") {
  Host host(0);
  host.world.spawn("owner", [&](sim::Actor& self) {
    net::Caller caller(self.messenger(), 1);
    proto::Endpoints to;
    to.set_unix("sim:host");
    auto peer = self.messenger().connect(to, net::Route::kUnix);
    REQUIRE(peer);
    REQUIRE(caller.call(*peer, spawn(7), seconds(5), "host"));
    while (caller.call(*peer, wait(7), seconds(5), "host")) {}
  }, sim::Who{1001, {1001}});
  host.run({1002, {1002}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    while (host.spawner.running.empty()) self.pause(milliseconds(1));
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host").error().code == Code::kPermission);
    net::Packet kill;
    kill.envelope.mutable_job_kill()->set_job(7);
    REQUIRE(caller.call(peer, std::move(kill), seconds(5), "host").error().code == Code::kPermission);
    REQUIRE(host.spawner.killed.empty());
  });
}

TEST_CASE("a spawn that comes after its job was ended starts nothing") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    net::Packet kill;
    kill.envelope.mutable_job_kill()->set_job(7);
    REQUIRE(caller.call(peer, std::move(kill), seconds(5), "host"));
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host").error().code == Code::kCancelled);
    REQUIRE(host.spawner.orders.empty());
  });
}

TEST_CASE("a spawn that is sent again starts one worker only") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host")->envelope.spawn_reply().started() == 1);
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host")->envelope.spawn_reply().started() == 1);
    REQUIRE(host.spawner.orders.size() == 1);
  });
}

TEST_CASE("a program without an absolute path is refused") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7, "tool"), seconds(5), "host").error().code == Code::kInvalid);
  });
}

TEST_CASE("workers that meet get what all gave, when the controller has said it") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    net::Caller worker(self.messenger(), 100);
    const auto connection = self.messenger().adopt(host.spawner.take_end(0));
    const auto meet = [&](std::size_t bytes = 5) {
      net::Packet packet;
      packet.envelope.mutable_worker_meet()->set_value(std::string(bytes, 'w'));
      return worker.call(*connection, std::move(packet), seconds(5), "host");
    };
    CHECK(meet(1025).error().code == Code::kTooLarge);
    CHECK(!meet()->envelope.worker_meet_reply().met());  // nobody else is there yet
    const auto events = caller.call(peer, wait(7), seconds(5), "host");
    REQUIRE(events->envelope.job_wait_reply().events_size() == 1);
    CHECK(events->envelope.job_wait_reply().events(0).meet() == "wwwww");
    CHECK(!meet()->envelope.worker_meet_reply().met());
    const auto later = caller.call(peer, wait(7), seconds(5), "host");
    CHECK(later->envelope.job_wait_reply().events_size() == 1);  // it was not told again
    net::Packet all;
    all.envelope.mutable_job_meet()->set_job(7);
    for (const auto* value : {"here", "there"}) all.envelope.mutable_job_meet()->add_values(value);
    REQUIRE(caller.call(peer, std::move(all), seconds(5), "host"));
    const auto met = meet();
    REQUIRE(met->envelope.worker_meet_reply().values_size() == 2);
    CHECK(met->envelope.worker_meet_reply().values(1) == "there");
  });
}

TEST_CASE("nobody but the job's user may say what its workers gave") {
  Host host(0);
  host.run({1002, {1002}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    host.world.spawn("owner", [&](sim::Actor& owner) {
      net::Caller own(owner.messenger(), 1);
      proto::Endpoints to;
      to.set_unix("sim:host");
      const auto at = owner.messenger().connect(to, net::Route::kUnix);
      (void)own.call(*at, spawn(7), seconds(5), "host").has_value();
      while (own.call(*at, wait(7), seconds(5), "host")) {}
    }, sim::Who{1001, {1001}});
    while (host.spawner.running.empty()) self.pause(milliseconds(1));
    net::Packet all;
    all.envelope.mutable_job_meet()->set_job(7);
    CHECK(caller.call(peer, std::move(all), seconds(5), "host").error().code == Code::kPermission);
  });
}

TEST_CASE("what only a worker may say is refused from anybody else") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    net::Packet result;
    result.envelope.mutable_worker_result()->set_result("done");
    REQUIRE(caller.call(peer, std::move(result), seconds(5), "host").error().code == Code::kPermission);
  });
}

}  // namespace
}  // namespace pif::lfs
