// What an LFS makes of views, peers and leases. docs/PROTOCOL.md "Views".
#include "../../lfs/src/context/view_state.h"

#include "fake_server.h"

using namespace pif;
using namespace pif::lfs;
using namespace pif::lfs::test;

namespace {

// Node `lost` is lost, this one is of that era.
proto::View view_of(std::uint64_t index, std::uint32_t lost, std::uint32_t own_era = 0) {
  proto::View view;
  view.set_index(index);
  if (own_era > 0) {
    view.add_nodes()->set_node(kNode);
    view.mutable_nodes(0)->set_state(wire::kViewMember);
    view.mutable_nodes(0)->set_era(own_era);
  }
  proto::ViewNode& node = *view.add_nodes();
  node.set_node(lost);
  node.set_state(wire::kViewLost);
  node.set_era(1);
  node.set_lost_order(1);
  return view;
}

Time at(int seconds) { return Time(std::chrono::seconds(seconds)); }

}  // namespace

TEST_CASE("a view is taken only as the server signed it, and never an older one") {
  ClusterKey key, other;
  other.bytes[0] = std::byte{1};
  ViewState state(key, kNode);
  CHECK(code_of(state.offer(wire::pack_view(other, view_of(5, 2)))) == Code::kBadCapability);
  std::string changed = wire::pack_view(key, view_of(5, 2));
  changed[3] = static_cast<char>(changed[3] ^ 1);
  CHECK(code_of(state.offer(changed)) == Code::kBadCapability);
  CHECK(code_of(state.offer("")) == Code::kBadCapability);
  CHECK(code_of(state.offer(wire::pack_view(key, view_of(5, 0)))) == Code::kInvalid);  // no node has that id
  const std::string packed = wire::pack_view(key, view_of(5, 2));
  const auto offered = state.offer(packed);
  REQUIRE(offered);
  REQUIRE(*offered);
  CHECK(state.index() == 0);  // not durable yet
  CHECK_FALSE(state.is_absent(2));
  CHECK_FALSE(*state.offer(packed));  // once is enough
  state.adopt(**offered, packed);
  CHECK(state.index() == 5);
  CHECK(state.is_absent(2));
  CHECK(state.state_of(3) == wire::kViewMember);
  CHECK_FALSE(*state.offer(wire::pack_view(key, view_of(4, 3))));
  CHECK_FALSE(*state.offer(packed));
  ViewState again(key, kNode);
  REQUIRE(again.load(state.packed()));
  CHECK(again.index() == 5);
  CHECK(again.is_absent(2));
  CHECK_FALSE(*again.offer(packed));
}

TEST_CASE(
    "a view that was kept under a key which is no longer accepted is none, and one that is accepted is passed on "
    "under the key that signs") {
  ClusterKey before, after;
  after.bytes[0] = std::byte{1};
  const std::string kept = wire::pack_view(before, view_of(5, 2));
  ViewState late(after, kNode);
  REQUIRE(late.load(kept));
  CHECK(late.index() == 0);
  KeyRing keys(before);
  ViewState state(keys, kNode);
  REQUIRE(state.load(kept));
  keys.set(after, before);
  CHECK(state.index() == 5);
  CHECK(wire::open_view(after, state.packed()));
}

TEST_CASE("a view that could not be made durable may come again") {
  ClusterKey key;
  ViewState state(key, kNode);
  const std::string packed = wire::pack_view(key, view_of(5, 2));
  REQUIRE(*state.offer(packed));
  state.give_up();
  CHECK(*state.offer(packed));
}

TEST_CASE("a lease is its holder's while it is a member, and no longer than it was given for") {
  ClusterKey key;
  ViewState state(key, kNode);
  CHECK_FALSE(state.has_lease(at(0)));
  state.grant_lease(at(6));
  CHECK(state.has_lease(at(5)));
  CHECK_FALSE(state.has_lease(at(6)));
  state.grant_lease(at(9));
  state.grant_lease(at(8));  // of an earlier heartbeat, answered later
  CHECK(state.has_lease(at(8)));
  const std::string packed = wire::pack_view(key, view_of(5, kNode));
  state.adopt(**state.offer(packed), packed);
  CHECK_FALSE(state.has_lease(at(8)));
}

TEST_CASE("peers of another run of the server are counted anew") {
  ClusterKey key;
  ViewState state(key, kNode);
  google::protobuf::RepeatedPtrField<proto::NodeInfo> peers;
  peers.Add()->set_id(2);
  state.note_peers(1, peers, 3);
  CHECK(state.peer_changes() == 3);
  state.note_peers(2, peers, 4);  // which the other run gave to who has three changes: perhaps not all of its
  CHECK(state.peer_changes() == 0);
  state.note_peers(2, peers, 1);
  CHECK(state.peer_changes() == 1);
  CHECK(state.peers().size() == 1);
}

TEST_CASE("an LFS keeps the view that it was told before it says so, over a crash, and its numbers begin its era") {
  ReportingFixture f;
  f.start_server();
  f.run([&](Peer& peer) {
    f.server.states = {{7, 2}, {8, 2}};
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    f.server.view = wire::pack_view(f.node.key, view_of(90, 2, 3));
    peer.self().pause(std::chrono::seconds(3));
    CHECK(f.server.beat.view() == 90);
    f.server.view = wire::pack_view(f.node.key, view_of(80, 3));
    peer.self().pause(std::chrono::seconds(2));
    CHECK(f.server.beat.view() == 90);
    f.server.view = wire::pack_view(ClusterKey{}, view_of(95, 3));
    peer.self().pause(std::chrono::seconds(2));
    CHECK(f.server.beat.view() == 90);
    f.node.crash();
    f.server.beat.Clear();
    f.server.view.clear();
    f.node.start();
    peer.self().pause(std::chrono::seconds(2));
    CHECK(f.server.beat.view() == 90);
    TestFile other;
    other.id = 8;
    REQUIRE_OK(peer.put(other, pattern(500, 1)));
    peer.self().pause(std::chrono::seconds(2));
    CHECK(f.server.beat.node().number() >> wire::kEraShift == 3);
  });
}

TEST_CASE("an LFS has a lease from the sending of a heartbeat, and none when the server is silent or takes it back") {
  ReportingFixture f;
  f.server.lease_ms = 6000;
  f.start_server();
  f.run([&](Peer& peer) {
    const auto has_lease = [&] {
      auto packet = peer.request(0, 0);
      packet.envelope.mutable_stats();
      const auto reply = peer.call(std::move(packet));
      REQUIRE_OK(reply);
      return reply->envelope.stats_reply().has_lease();
    };
    peer.self().pause(std::chrono::seconds(3));
    CHECK(has_lease());
    SECTION("when the server is silent") {
      f.world.kill(f.actor);
      peer.self().pause(std::chrono::milliseconds(4500));
      CHECK(has_lease());
      peer.self().pause(std::chrono::milliseconds(2000));
      CHECK_FALSE(has_lease());
    }
    SECTION("when it is stale") {
      f.server.verdict = wire::kIsStale;
      peer.self().pause(std::chrono::seconds(2));
      CHECK_FALSE(has_lease());
    }
    SECTION("when the server has forgotten something") {
      f.server.verdict = wire::kServerBehind;
      peer.self().pause(std::chrono::seconds(7));
      CHECK_FALSE(has_lease());
    }
    SECTION("when it is lost") {
      f.server.view = wire::pack_view(f.node.key, view_of(90, kNode));
      peer.self().pause(std::chrono::seconds(2));
      CHECK_FALSE(has_lease());
    }
  });
}
