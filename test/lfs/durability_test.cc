// What was acknowledged survives a power cut after calls that failed before it.
#include <algorithm>

#include "appender.h"
#include "held_executor.h"
#include "pif/wire/values.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

// `call` of what has `name` in its path fails from now on.
void fail_at(Node& node, std::string call, std::string name) {
  node.disk->set_fault([call = std::move(call), name = std::move(name)](std::string_view c, std::string_view path) {
    return c == call && path.find(name) != std::string_view::npos ? Code::kIo : Code::kOk;
  });
}

}  // namespace

TEST_CASE("an overwrite is not forgotten by the redo log after a failed append to the same component") {
  with_node([&](Peer& peer, Node& node) {
    TestFile file, other;
    other.id = 8;
    REQUIRE_OK(peer.put(file, pattern(10000, 1)));
    REQUIRE_OK(peer.put(other, pattern(1000, 2)));
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 3)));
    Appender a(peer.self(), {&node}, file);
    const auto grant = a.reserve(2, 200).value();
    fail_at(node, "sync", "0007.dat");
    CHECK(code_of(a.rows(0, grant, 100, 2, pattern(200, 4))) == Code::kIo);
    node.disk->set_fault({});
    CHECK(code_of(peer.flush()) == Code::kIo);  // the log cannot be emptied
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 1).value() == pattern(100, 3));
    REQUIRE_OK(peer.flush());
  });
}

namespace {

// Writes components of files [first, first + count) and seals them, all under way at once; how the seals ended.
std::vector<Code> seal_at_once(Peer& peer, std::uint64_t first, std::uint64_t count) {
  TestFile file;
  for (file.id = first; file.id < first + count; ++file.id)
    REQUIRE_OK(peer.write(file, 0, 3, pattern(300, static_cast<unsigned>(file.id))));
  std::vector<net::CallId> seals;
  for (file.id = first; file.id < first + count; ++file.id) {
    auto packet = peer.request(file.id, kMayCreate | kMayRead);
    auto& seal = *packet.envelope.mutable_seal();
    *seal.mutable_shape() = file.shape();
    seal.set_rows(3);
    seal.set_bytes(300);
    seal.mutable_file()->set_records(3);
    seal.mutable_file()->set_bytes(300);
    packet.envelope.set_credential(peer.credential);
    seals.push_back(peer.start(std::move(packet)));
  }
  std::vector<Code> ends;
  for (const net::CallId seal : seals) {
    const auto reply = peer.wait(seal);
    ends.push_back(reply ? Code::kOk : reply.error().code);
  }
  return ends;
}

}  // namespace

TEST_CASE("small components that are sealed at the same time are all durable when that is answered") {
  for (const bool can_sync_all : {true, false}) {
    with_node([&](Peer& peer, Node& node) {
      unsigned all = 0, single = 0;
      node.disk->set_fault([&](std::string_view call, std::string_view) {
        all += call == "sync_all";
        single += call == "sync_folder";
        return call == "sync_all" && !can_sync_all ? Code::kUnsupported : Code::kOk;
      });
      const auto ends = seal_at_once(peer, 100, 60);
      CHECK(std::count(ends.begin(), ends.end(), Code::kOk) == 60);
      CHECK(all > 0);
      CHECK(all <= (can_sync_all ? 60u / 8 : 1u));  // where it cannot be had, nobody asks again
      node.disk->set_fault({});
      node.crash();
      node.start();
      for (std::uint64_t id = 100; id < 160; ++id)
        CHECK(peer.read(id, 0, 3).value() == pattern(300, static_cast<unsigned>(id)));
    });
  }
}

TEST_CASE("large components, which are synced by themselves, do not count among the batches of small ones") {
  with_node([&](Peer& peer, Node&) {
    TestFile large;
    large.format = Format::fixed(4096);
    const auto rows = pattern(4096 * 20, 5);
    for (large.id = 50; large.id < 53; ++large.id) {
      for (std::uint64_t row = 0; row < 280; row += 20) REQUIRE_OK(peer.write(large, row, 20, rows));
      REQUIRE_OK(peer.seal(large, 280, 4096 * 280));
      const auto ends = seal_at_once(peer, large.id * 100, 20);  // goes on although a large one has ended
      CHECK(std::count(ends.begin(), ends.end(), Code::kOk) == 20);
    }
  });
}

TEST_CASE("of components that are synced together only the one fails whose bytes were lost") {
  with_node([&](Peer& peer, Node& node) {
    fail_at(node, "sync", "006e.dat");  // 110
    const auto ends = seal_at_once(peer, 100, 40);
    node.disk->set_fault({});
    for (std::size_t i = 0; i < ends.size(); ++i) CHECK(ends[i] == (i == 10 ? Code::kIo : Code::kOk));
    node.crash();
    node.start();
    CHECK(code_of(peer.read(110, 0, 3)) == Code::kNotFound);
    CHECK(peer.read(111, 0, 3).value() == pattern(300, 111));
  });
}

TEST_CASE("a head of the redo log that failed to sync is written again when the LFS starts") {
  with_node([&](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(10000, 1)));
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 3)));
    fail_at(node, "sync", "/redo.");
    CHECK_FALSE(peer.flush().has_value());
    node.disk->set_fault({});
    node.kill();
    node.start();
    REQUIRE_OK(peer.overwrite(7, 1, 1, pattern(100, 5)));
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 1).value() == pattern(100, 3));
    CHECK(peer.read(7, 1, 1).value() == pattern(100, 5));
  });
}

TEST_CASE("a folder of components whose entry failed to sync is made again") {
  with_node([&](Peer& peer, Node& node) {
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "sync_folder" && path == "/lfs0/data" ? Code::kIo : Code::kOk;
    });
    CHECK(code_of(peer.write(TestFile{}, 0, 100, pattern(10000, 1))) == Code::kIo);
    node.disk->set_fault({});
    REQUIRE_OK(peer.put(TestFile{}, pattern(10000, 1)));
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 1).value() == pattern(100, 1));
  });
}

TEST_CASE("a redo log whose name failed to sync is durable after the next start") {
  const auto fail_log = [](Node& node) {
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "sync_folder" && path == "/lfs0/log" ? Code::kIo : Code::kOk;
    });
  };
  with_node(
      [&](Peer& peer, Node& node) {
        peer.self().pause(std::chrono::seconds(1));
        REQUIRE(node.open_error);
        node.disk->set_fault({});
        node.start();
        REQUIRE_OK(peer.put(TestFile{}, pattern(10000, 1)));
        REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 3)));
        node.crash();
        node.start();
        CHECK(peer.read(7, 0, 1).value() == pattern(100, 3));
      },
      1, fail_log);
}

TEST_CASE("a lost file whose overwrites are in place long since does not keep an LFS from starting") {
  with_node([&](Peer& peer, Node& node) {
    TestFile other;
    other.id = 8;
    REQUIRE_OK(peer.put(TestFile{}, pattern(10000, 1)));
    REQUIRE_OK(peer.put(other, pattern(10000, 1)));
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 3)));
    fail_at(node, "write", "/redo.");
    CHECK_FALSE(peer.flush().has_value());  // in place, but the log still has them
    node.disk->set_fault({});
    node.kill();
    REQUIRE_OK(component::make_memory_storage(node.disk)->remove("/lfs0/data/07/0000000000000007.dat"));
    node.open_error.reset();
    node.start();
    CHECK(peer.read(8, 0, 1).has_value());
    CHECK_FALSE(node.open_error);
  });
}

TEST_CASE("what an append made takes no names that are still being removed") {
  sim::World world(1);
  Node node(world, "lfs0", 1);
  const auto first_storage = component::make_memory_storage(node.disk);
  REQUIRE_OK(lfs::make_root(*first_storage, *kv::open_memory(node.catalogue), "/lfs0", {"c0ffee", 1, "lfs0", ""}));
  HeldExecutor executor;
  const auto body = [&](sim::Actor& self) {
    const auto storage = component::make_memory_storage(node.disk);
    const auto store = kv::open_memory(node.catalogue);
    NoSpawner spawner;
    lfs::Config config;
    config.node = 1;
    config.name = "lfs0";
    config.cluster = "c0ffee";
    config.root = "/lfs0";
    config.key = node.key;
    config.log_bytes = 1u << 20;
    config.server.set_unix_path("sim:server");
    lfs::Lfs lfs(std::move(config), lfs::World{self.messenger(), *storage, *store, executor, spawner, self.entropy()});
    REQUIRE_OK(lfs.open());
    const std::atomic<bool> never = false;
    (void)lfs.serve(never);
  };
  auto actor = world.spawn("lfs0", body, {0, {0}});
  world.spawn("server",
              [&](sim::Actor& self) {  // which says of every file that it is committed
                for (;;) {
                  const auto delivery = self.messenger().receive(kNever);
                  if (!delivery || !*delivery || (*delivery)->kind != net::Delivery::Kind::kPacket) continue;
                  const auto& request = (*delivery)->packet.envelope;
                  auto reply = net::reply_to(request);
                  if (request.has_heartbeat()) {
                    proto::HeartbeatReply& answer = *reply.envelope.mutable_heartbeat_reply();
                    answer.set_verdict(request.heartbeat().stage() == wire::kAsks ? wire::kAdmitted : wire::kGoOn);
                    answer.set_incarnation(5);
                    answer.mutable_moment()->set_run(1);
                  }
                  if (request.has_file_states())
                    reply.envelope.mutable_file_states_reply()->mutable_moment()->set_run(1);
                  for (int i = 0; i < request.file_states().files_size(); ++i) {
                    executor.hold();
                    reply.envelope.mutable_file_states_reply()->add_states(2);
                  }
                  (void)self.messenger().send((*delivery)->peer, std::move(reply));
                }
              },
              {0, {0}});
  world.spawn_main("client", [&](sim::Actor& self) {
    TestFile file;
    file.nodes = {2, 1};
    file.index = 1;
    Peer peer(self, node);
    const auto rows = [&](std::uint64_t first, std::uint64_t generation, const std::string& body_bytes) {
      auto packet = peer.request(7, kMayRead | kMayWrite);
      auto& asked = *packet.envelope.mutable_append_rows();
      asked.set_file(7);
      asked.set_first(first);
      asked.set_count(body_bytes.size() / 100);
      asked.set_generation(generation);
      *asked.mutable_shape() = file.shape();
      asked.mutable_base();
      packet.body = buffer_of(body_bytes);
      return packet;
    };
    CHECK(code_of(peer.call(rows(5, 1, pattern(100, 1)))) == Code::kRetry);  // those before never come
    while (executor.held() == 0) self.pause(std::chrono::milliseconds(100));
    // While the files of what that made are being removed:
    CHECK(code_of(peer.call(rows(0, 2, pattern(300, 9)))) == Code::kRetry);
    executor.release();
    self.pause(std::chrono::seconds(2));  // the LFS looks at least once a second
    REQUIRE_OK(peer.call(rows(0, 2, pattern(300, 9))));
    world.kill(actor);
    actor = world.spawn("lfs0", body, {0, {0}});
    CHECK(peer.read(7, 0, 3).value() == pattern(300, 9));
  });
  world.run();
}
