// An LFS that was lost and gets what it lacks; its PIF Server is faked.
#pragma once

#include "bevy.h"
#include "lost_server.h"
#include "pif/kv/value.h"

namespace pif::lfs::test {

inline constexpr std::uint32_t kShort = 500;
inline constexpr std::uint32_t kLong = 10000;

class Rebuilding {
 public:
  Rebuilding(sim::World& world, Bevies& bevies, LfsIndex lost) : world_(world), b_(bevies), lost_(lost) {
    server.fake.unknown = 2;  // committed
    server.fake.lease_ms = 6000;
    world_.spawn("server", [this](sim::Actor& self) { server.run(self, x().key); }, {0, {0}});
  }
  ~Rebuilding() { x().kill(); }

  Node& x() { return *b_.nodes[lost_]; }
  Peer& peer() { return *b_.peers[lost_]; }

  void note_file(const FileLength& length, std::uint64_t id) { server.add_file(b_.at(lost_), length, id); }
  void note_file() { note_file(b_.length(), b_.file.id); }
  // Its disk is empty, and it is told so.
  void lose_disk() {
    auto& node = x();
    node.kill();
    node.disk = component::MemoryDisk::make();
    node.catalogue = kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size()));
    node.forget_root();
    server.set_state(node.id(), wire::kViewRebuilding);
    node.start();
  }
  // What it has durably now; later it is away from here on, and comes back with that.
  void save() {
    saved_disk_ = x().disk->copy();
    saved_catalogue_ = kv::copy_memory_state(*x().catalogue);
  }
  void come_back() {
    auto& node = x();
    node.kill();
    node.disk = saved_disk_->copy();
    node.catalogue = kv::copy_memory_state(*saved_catalogue_);
    server.set_state(node.id(), wire::kViewRebuilding);
    node.start();
  }
  // It began by itself, and has all now. before: as it was when the others had written all.
  proto::RebuildStatusReply require_catches_up(sim::Actor& self, const proto::ComponentState& before) {
    const auto done = await(self, {wire::kRebuilt});
    CHECK(done.failed_count() == 0);
    CHECK(server.words == std::vector<std::uint32_t>{wire::kViewReturning, wire::kViewMember});
    const auto after = b_.state(lost_);
    CHECK(after.rows() == before.rows());
    CHECK(after.bytes() == before.bytes());
    CHECK(after.data_tail_sum() == before.data_tail_sum());
    CHECK(after.index_tail_sum() == before.index_tail_sum());
    CHECK(after.pages() >= before.pages());
    CHECK(after.published().records() == b_.records.size());
    b_.require_all_rebuilt();
    b_.require_clean();
    return done;
  }
  Result<net::Packet> ask(std::uint64_t rate = 0) {
    auto packet = peer().request(0, kMayManage);
    packet.envelope.mutable_rebuild()->set_bytes_per_second(rate);
    return peer().call(std::move(packet));
  }
  proto::RebuildStatusReply status() {
    auto packet = peer().request(0, kMayManage);
    packet.envelope.mutable_rebuild_status();
    auto reply = peer().call(std::move(packet));
    REQUIRE_OK(reply);
    return reply->envelope.rebuild_status_reply();
  }
  proto::RebuildStatusReply await(sim::Actor& self, std::initializer_list<std::uint32_t> states) {
    for (int i = 0; i < 3000; ++i) {
      const auto now = status();
      if (std::find(states.begin(), states.end(), now.state()) != states.end()) return now;
      (void)self.pause(std::chrono::milliseconds(20));
    }
    FAIL("state " << status().state());
    return {};
  }
  // What X has is what it had.
  void require_same(const proto::ComponentState& before) {
    const auto after = b_.state(lost_);
    CHECK(after.rows() == before.rows());
    CHECK(after.bytes() == before.bytes());
    CHECK(after.data_tail_sum() == before.data_tail_sum());
    CHECK(after.index_tail_sum() == before.index_tail_sum());
    CHECK(after.pages() == before.pages());
    CHECK(after.state() == 3);
    b_.require_all_rebuilt();
    b_.require_clean();
  }

  LostServer server;

 private:
  sim::World& world_;
  Bevies& b_;
  const LfsIndex lost_;
  std::shared_ptr<component::MemoryDisk> saved_disk_;
  std::shared_ptr<kv::MemoryState> saved_catalogue_;
};

inline void with_lost(const Format& format, LfsIndex lost,
                      const std::function<void(Bevies&, Rebuilding&, sim::Actor&)>& body) {
  sim::World world(1);
  Bevies bevies(world, format, "sim:server");
  Rebuilding rebuilding(world, bevies, lost);
  world.spawn_main("client", [&](sim::Actor& self) {
    bevies.connect(self);
    body(bevies, rebuilding, self);
    bevies.peers.clear();
  });
  world.run();
}

}  // namespace pif::lfs::test
