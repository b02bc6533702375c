// Worker hosts in the simulated world, each in an actor of its own, over a spawner that starts nothing: tests say when
// a process ends and how, and hold the worker's end of its connection. And the client that asks them.
#pragma once

#include "../../lfs/src/workers/worker_host.h"

#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/net/caller.h"
#include "sim/world.h"

namespace pif::lfs::test {

// Processes that do nothing until they are killed, or end().
class IdleSpawner final : public Spawner {
 public:
  explicit IdleSpawner(sim::World& world) : world_(world) {}

  Result<Started> start(const Order& order) override {
    if (error) return fail(*error);
    orders.push_back(order);
    orders.back().stored = nullptr;  // which was borrowed
    auto [ours, theirs] = world_.make_pair();
    ends[++last_] = std::move(theirs);
    running.insert(last_);
    if (order.stored != nullptr) from_store.insert(last_);
    if (lacks && !order.build.empty() && order.stored == nullptr) {
      lacking_.insert(last_);
      end(last_, {false, 126, {}});
    }
    return Started{last_, gives_sockets ? std::move(ours) : Handle{}};
  }
  Begun begun(ProcessId process) override {
    if (holds) return Begun::kPending;
    return lacking_.contains(process) ? Begun::kLacks : Begun::kRuns;
  }
  void kill(ProcessId process) override {
    killed.insert(process);
    end(process, {true, 9, {}});
  }
  std::optional<WorkerExit> exited(ProcessId process) override {
    const auto found = exits_.find(process);
    if (found == exits_.end()) return std::nullopt;
    running.erase(process);
    return found->second;
  }
  // The first end counts.
  void end(ProcessId process, WorkerExit exit) { exits_.try_emplace(process, std::move(exit)); }

  std::vector<Order> orders;
  std::map<ProcessId, Handle> ends;  // the workers' ends of their connections; ids are 1, 2, ...
  std::set<ProcessId> running;
  std::set<ProcessId> killed;
  std::optional<Error> error;  // of every start from now on
  bool gives_sockets = true;
  bool lacks = false;              // no program is there in any build
  bool holds = false;              // nobody knows yet whether it is
  std::set<ProcessId> from_store;  // run what the host has stored

 private:
  sim::World& world_;
  ProcessId last_ = 0;
  std::set<ProcessId> lacking_;
  std::map<ProcessId, WorkerExit> exits_;
};

// A worker host, and a client that asks it.
struct Host {
  using Body = std::function<void(sim::Actor&, net::Caller&, net::PeerId)>;

  explicit Host(std::uint32_t uid, const std::string& name = "host",
                std::shared_ptr<sim::World> shared = std::make_shared<sim::World>(1))
      : owned(std::move(shared)) {
    config.uid = uid;
    config.name = name;
    config.root = "/root";
    config.endpoints.set_unix_path("sim:" + name);
  }
  ~Host() { stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void start() {
    world.spawn(
        config.name, [this](sim::Actor& self) { serve(self); }, sim::Who{config.uid, {config.uid}});
  }
  void stop() {
    if (const auto host = world.find(config.name)) world.kill(*host);
  }
  // Serves as long as the client goes on.
  void run(sim::Who who, const Body& client, net::Route route = net::Route::kUnix) {
    start();
    world.spawn_main(
        "client",
        [&](sim::Actor& self) {
          net::Caller caller(self.messenger(), 1);
          client(self, caller, connect(self, route));
        },
        std::move(who));
    world.run();
    stop();  // before the spawner goes
  }
  net::PeerId connect(sim::Actor& self, net::Route route = net::Route::kUnix) const {
    auto peer = self.messenger().connect(info().endpoints(), route);
    REQUIRE(peer);
    return *peer;
  }
  // The worker's end of the n-th process that was started, for the client to speak for it.
  net::PeerId worker(sim::Actor& self, Spawner::ProcessId process = 1) {
    auto peer = self.messenger().adopt(std::move(spawner.ends.at(process)));
    REQUIRE(peer);
    return *peer;
  }
  proto::NodeInfo info() const {
    proto::NodeInfo out;
    out.set_id(config.node);
    out.set_name(config.name);
    out.mutable_endpoints()->set_unix_path("sim:" + config.name);
    return out;
  }

  const std::shared_ptr<sim::World> owned;
  sim::World& world = *owned;
  Config config;
  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  IdleSpawner spawner{world};

 private:
  void serve(sim::Actor& self) {
    auto storage = component::make_memory_storage(disk);
    auto catalogue = kv::open_memory(kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size())));
    InlineExecutor executor;
    daemon::Fibers fibers(self.clock());
    Replies replies(self.messenger(), fibers, config.name);
    daemon::Caller caller(self.messenger(), fibers);
    Operations operations;
    WorkerHost host(config, World{self.messenger(), *storage, *catalogue, executor, spawner, self.entropy(), {}},
                    fibers, caller, operations, [](net::PeerId) {});
    const daemon::AtExit end([&] { fibers.end_all(); });
    while (true) {
      auto delivery = self.messenger().receive(fibers.next_deadline());
      if (!delivery) return;
      if (*delivery && (*delivery)->kind == net::Delivery::Kind::kClosed) host.closed((*delivery)->peer);
      if (*delivery && !caller.offer(**delivery) && (*delivery)->kind == net::Delivery::Kind::kPacket) {
        const Time now = self.clock().now();
        const auto request = std::make_shared<Request>(Request{daemon::request_of(**delivery, now), {}, {}});
        if (const Handler* handler = operations.find(request->envelope().op_case()))
          fibers.start([&replies, handler, request] {
            if (auto result = handler->run(handler->part, *request)) replies.answer(*request, std::move(*result));
          });
      }
      fibers.run();
    }
  }
};

inline net::Packet spawn(std::uint64_t job, std::uint32_t rank = 0, const std::string& program = "/bin/tool") {
  net::Packet packet;
  packet.envelope.mutable_spawn()->set_job(job);
  packet.envelope.mutable_spawn()->set_program(program);
  packet.envelope.mutable_spawn()->set_rank(rank);
  packet.envelope.mutable_spawn()->set_fan_out(8);
  return packet;
}

inline net::Packet wait(std::uint64_t job, std::uint64_t seen = 0) {
  net::Packet packet;
  packet.envelope.mutable_job_wait()->set_job(job);
  packet.envelope.mutable_job_wait()->set_hold_ms(500);
  packet.envelope.mutable_job_wait()->set_seen(seen);
  return packet;
}

inline net::Packet kill(std::uint64_t job) {
  net::Packet packet;
  packet.envelope.mutable_job_kill()->set_job(job);
  return packet;
}

}  // namespace pif::lfs::test
