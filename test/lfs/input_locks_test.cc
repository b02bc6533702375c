// What a worker reads stays as it is until the worker has gone.
#include "held_executor.h"
#include "host.h"
#include "node.h"

namespace pif::lfs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kFile = 7, kOther = 8;

// An LFS with workers that do nothing by themselves, and its client, who speaks for them, too.
struct ToolNode {
  void run(const std::function<void(Peer&)>& body) {
    const auto storage = component::make_memory_storage(node.disk);
    const auto catalogue = kv::open_memory(node.catalogue);
    REQUIRE_OK(make_root(*storage, *catalogue, node.root(), {"c0ffee", kNode, node.name(), ""}));
    const auto lfs = world.spawn(node.name(), [this](sim::Actor& actor) { serve(actor); }, {0, {0}});
    world.spawn_main("client", [&](sim::Actor& actor) {
      self = &actor;
      caller.emplace(actor.messenger(), 1000);
      Peer peer(actor, node);
      for (const std::uint64_t id : {kFile, kOther}) {
        TestFile file;
        file.id = id;
        REQUIRE_OK(peer.put(file, pattern(1000, 1)));
      }
      body(peer);
      caller.reset();
    });
    world.run();
    world.kill(lfs);
  }
  net::PeerId start_worker(Peer& peer, std::uint32_t rank = 0) {
    REQUIRE_OK(peer.call(spawn(7, rank)));
    return self->messenger().adopt(std::move(spawner.ends.at(rank + 1))).value();
  }
  net::CallId start(net::Packet packet) {
    proto::Endpoints to;
    to.set_unix_path("sim:" + node.name());
    const auto lfs = self->messenger().connect(to, net::Route::kUnix).value();
    return caller->start(lfs, std::move(packet), seconds(20), node.name());
  }
  net::CallId start_attach(Peer& peer, net::PeerId worker, std::uint64_t file = kFile) {
    auto packet = peer.request(file, kMayRead);
    packet.envelope.mutable_attach()->set_file(file);
    return caller->start(worker, std::move(packet), seconds(20), node.name());
  }
  void attach(Peer& peer, net::PeerId worker) { REQUIRE_OK(caller->wait(start_attach(peer, worker))); }
  // Once it may be.
  static void overwrite(Peer& peer, const std::string& bytes) {
    Status done;
    for (int i = 0; i < 50; ++i) {
      done = peer.overwrite(kFile, 0, 1, bytes);
      if (code_of(done) != Code::kBusy) break;
      peer.self().pause(milliseconds(100));
    }
    REQUIRE_OK(done);
    CHECK(peer.read(kFile, 0, 1).value() == bytes);
  }

  sim::World world{1};
  Node node{world};  // its disk, catalogue and key
  IdleSpawner spawner{world};
  HeldExecutor executor;
  sim::Actor* self = nullptr;
  std::optional<net::Caller> caller;

 private:
  void serve(sim::Actor& actor) {
    const auto storage = component::make_memory_storage(node.disk);
    const auto catalogue = kv::open_memory(node.catalogue);
    Config config;
    config.node = kNode;
    config.name = node.name();
    config.cluster = "c0ffee";
    config.root = node.root();
    config.key = node.key;
    config.log_bytes = node.log_bytes;
    Lfs lfs(std::move(config),
            World{actor.messenger(), *storage, *catalogue, executor, spawner, actor.entropy(), {}, nullptr, {}});
    REQUIRE_OK(lfs.open());
    const std::atomic<bool> never = false;
    (void)lfs.serve(never);
  }
};

}  // namespace

TEST_CASE("what a worker has as input is not changed before it hangs up, and who wants to hears so at once") {
  ToolNode f;
  f.run([&](Peer& peer) {
    const auto first = f.start_worker(peer), second = f.start_worker(peer, 1);
    f.attach(peer, first);
    f.attach(peer, first);  // a repeated request
    f.attach(peer, second);
    const Time asked = f.self->clock().now();
    CHECK(code_of(peer.overwrite(kFile, 0, 1, pattern(100, 2))) == Code::kBusy);
    CHECK(f.self->clock().now() - asked < seconds(1));
    REQUIRE_OK(peer.overwrite(kOther, 0, 1, pattern(100, 2)));
    REQUIRE_OK(peer.flush());  // a checkpoint does not wait for it
    f.self->messenger().disconnect(first);
    f.self->pause(seconds(1));
    CHECK(code_of(peer.overwrite(kFile, 0, 1, pattern(100, 2))) == Code::kBusy);  // the other one has it
    f.self->messenger().disconnect(second);
    f.overwrite(peer, pattern(100, 3));
  });
}

TEST_CASE("a worker that has ended has no input any more, though its connection is open somewhere") {
  ToolNode f;
  f.run([&](Peer& peer) {
    f.attach(peer, f.start_worker(peer));
    CHECK(code_of(peer.overwrite(kFile, 0, 1, pattern(100, 2))) == Code::kBusy);
    f.spawner.end(1, {});
    f.overwrite(peer, pattern(100, 2));
  });
}

TEST_CASE("what an LFS is about to do to a component is done before a worker gets it, and nothing more begins") {
  ToolNode f;
  f.run([&](Peer& peer) {
    const auto worker = f.start_worker(peer);
    f.executor.hold(1);
    const auto overwriting = f.start(peer.overwrite_request(kFile, 0, 1, pattern(100, 2)));
    while (f.executor.held() == 0) f.self->pause(milliseconds(1));
    const auto attaching = f.start_attach(peer, worker);
    for (int i = 0; i < 3; ++i) {
      (void)f.caller->pump(f.self->clock().now() + milliseconds(50));
      CHECK_FALSE(f.caller->is_done(attaching));
    }
    Peer other(*f.self, f.node);
    CHECK(code_of(other.overwrite(kFile, 1, 1, pattern(100, 3))) == Code::kBusy);
    f.executor.release();
    REQUIRE_OK(f.caller->wait(attaching));
    REQUIRE_OK(f.caller->wait(overwriting));
    CHECK(other.read(kFile, 0, 1).value() == pattern(100, 2));
  });
}

}  // namespace pif::lfs::test
