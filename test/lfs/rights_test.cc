// Every LFS checks for itself who asks and what he may do.
#include "node.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

net::Packet read_packet(std::uint64_t file) {
  net::Packet packet;
  packet.envelope.mutable_read()->set_file(file);
  packet.envelope.mutable_read()->set_count(1);
  return packet;
}

Code read_with(Peer& peer, const std::string& capability, std::uint64_t file = 7) {
  auto packet = read_packet(file);
  packet.envelope.set_capability(capability);
  return code_of(peer.call(std::move(packet)));
}

}  // namespace

TEST_CASE("a capability opens one file, for one user, for what it says, and no longer than it says") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    const auto soon = peer.self().clock().wall_seconds() + 100;
    const auto good = peer.mint_rights(7, kMayRead);
    CHECK(read_with(peer, good) == Code::kOk);
    CHECK(read_with(peer, "") == Code::kPermission);
    CHECK(read_with(peer, peer.mint_rights(7, kMayWrite)) == Code::kBadCapability);
    CHECK(read_with(peer, peer.mint_rights(8, kMayRead)) == Code::kBadCapability);
    CHECK(read_with(peer, mint(node.key, Capability{FileId(7), 1001, kMayRead, 0, soon})) == Code::kBadCapability);
    ClusterKey other = node.key;
    other.bytes[0] ^= std::byte{1};
    CHECK(read_with(peer, mint(other, Capability{FileId(7), 1000, kMayRead, 0, soon})) == Code::kBadCapability);
    for (std::size_t i = 0; i < good.size(); ++i) {
      auto forged = good;
      forged[i] = static_cast<char>(forged[i] ^ 1);
      CHECK(read_with(peer, forged) == Code::kBadCapability);
    }
    CHECK(read_with(peer, good.substr(0, 20)) == Code::kBadCapability);
    CHECK(read_with(peer, good) == Code::kOk);  // from the cache
    peer.self().pause(std::chrono::seconds(kCapabilitySeconds + kClockSkewSeconds - 5));
    CHECK(read_with(peer, good) == Code::kOk);  // clocks may differ
    peer.self().pause(std::chrono::seconds(10));
    CHECK(read_with(peer, good) == Code::kBadCapability);
  });
}

TEST_CASE("what was signed by a key is good as long as that is accepted, and not longer because it was good before") {
  KeyRing keys;
  with_node(
      [&](Peer& peer, Node& node) {
        REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
        const auto soon = peer.self().clock().wall_seconds() + 500;
        const Capability right{FileId(7), 1000, kMayRead, 0, soon};
        ClusterKey next = node.key;
        next.bytes[0] ^= std::byte{1};
        CHECK(read_with(peer, mint(node.key, right)) == Code::kOk);
        CHECK(read_with(peer, mint(next, right)) == Code::kBadCapability);
        keys.set(node.key, next);
        CHECK(read_with(peer, mint(node.key, right)) == Code::kOk);
        CHECK(read_with(peer, mint(next, right)) == Code::kOk);
        keys.set(next, std::nullopt);
        CHECK(read_with(peer, mint(node.key, right)) == Code::kBadCapability);
        CHECK(read_with(peer, mint(next, right)) == Code::kOk);
      },
      1,
      [&keys](Node& node) {
        keys = node.key;
        node.adjust = [&keys](lfs::Config& config) { config.key = keys; };
      });
}

TEST_CASE("an older epoch is refused once a newer one was seen") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    CHECK(read_with(peer, peer.mint_rights(7, kMayRead, 3)) == Code::kOk);
    CHECK(read_with(peer, peer.mint_rights(7, kMayRead, 2)) == Code::kBadCapability);
    CHECK(read_with(peer, peer.mint_rights(7, kMayRead, 3)) == Code::kOk);
  });
}

TEST_CASE("each operation asks for its own right") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    const auto with = [&](std::uint32_t rights, const std::function<void(proto::Envelope&)>& fill) {
      auto packet = peer.request(7, rights);
      fill(packet.envelope);
      return code_of(peer.call(std::move(packet)));
    };
    const auto overwrite = [](proto::Envelope& e) {
      e.mutable_overwrite()->set_file(7), e.mutable_overwrite()->set_count(1);
    };
    CHECK(with(kMayRead, overwrite) == Code::kBadCapability);
    const auto reserve = [](proto::Envelope& e) { e.mutable_reserve()->set_file(7); };
    CHECK(with(kMayRead | kMayCreate, reserve) == Code::kBadCapability);
    const auto settle = [](proto::Envelope& e) { e.mutable_settle()->add_removed(7); };
    CHECK(with(kMayRead | kMayWrite | kMayCreate, settle) == Code::kBadCapability);
    const auto list = [](proto::Envelope& e) { e.mutable_list_components(); };
    CHECK(with(kMayRead, list) == Code::kBadCapability);
    const auto check = [](proto::Envelope& e) { e.mutable_check_component()->set_file(7); };
    CHECK(with(kMayRead, check) == Code::kBadCapability);
    TestFile file;
    const auto write = [&](proto::Envelope& e) {
      *e.mutable_write()->mutable_shape() = file.shape(), e.mutable_write()->set_count(1);
    };
    CHECK(with(kMayRead | kMayWrite, write) == Code::kBadCapability);
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
  });
}

TEST_CASE("over ZeroMQ a credential names the requester, and nobody gets descriptors") {
  sim::World world(1);
  Node node(world);
  node.start();
  world.spawn_main("client", [&](sim::Actor& self) {
    Peer local(self, node);
    REQUIRE_OK(local.put(TestFile{}, pattern(500, 1)));
    Peer remote(self, node, 1000, true);
    CHECK(code_of(remote.read(7, 0, 1)) == Code::kPermission);  // unknown
    remote.credential = "nonsense";
    CHECK(code_of(remote.read(7, 0, 1)) == Code::kBadCapability);
    const auto later = self.clock().wall_seconds() + 100;
    remote.credential = mint(node.key, Credential{SessionId(1), 1001, {1001}, later});
    CHECK(code_of(remote.read(7, 0, 1)) == Code::kBadCapability);  // another user's capability
    remote.credential = mint(node.key, Credential{SessionId(1), 1000, {1000}, later});
    CHECK(remote.read(7, 0, 5).value() == pattern(500, 1));
    CHECK(code_of(remote.attach(7)) == Code::kUnsupported);
    self.pause(std::chrono::seconds(200));
    CHECK(code_of(remote.read(7, 0, 1)) == Code::kBadCapability);  // expired
  });
  world.run();
}

// A routing id is no identity: whoever takes it over must not be taken for the program that had it.
TEST_CASE("over ZeroMQ every request needs its own credential, whatever its connection showed before") {
  sim::World world(1);
  Node node(world);
  node.start();
  world.spawn_main("client", [&](sim::Actor& self) {
    Peer local(self, node);
    REQUIRE_OK(local.put(TestFile{}, pattern(500, 1)));
    Peer remote(self, node, 1000, true);
    remote.credential = mint(node.key, Credential{SessionId(1), 1000, {1000}, self.clock().wall_seconds() + 100});
    CHECK(remote.read(7, 0, 5).value() == pattern(500, 1));
    remote.credential.clear();
    CHECK(code_of(remote.read(7, 0, 1)) == Code::kPermission);
  });
  world.run();
}

TEST_CASE("a capability that ends at the end of time is good, now and from the cache") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    const auto endless = mint(node.key, Capability{FileId(7), 1000, kMayRead, 0, INT64_MAX});
    CHECK(read_with(peer, endless) == Code::kOk);
    CHECK(read_with(peer, endless) == Code::kOk);
  });
}

TEST_CASE("a sealed component is read by who may, and stays sealed until the server says that it is committed") {
  with_node([](Peer& peer, Node&) {
    const TestFile file;
    REQUIRE_OK(peer.write(file, 0, 5, pattern(500, 1)));
    CHECK(code_of(peer.read(7, 0, 1)) == Code::kInvalid);  // open
    REQUIRE_OK(peer.seal(file, 5, 500));
    CHECK(read_with(peer, peer.mint_rights(7, kMayRead | kMayCreate)) == Code::kOk);
    CHECK(peer.attach(7).value().envelope.attach_reply().state().state() == 2);
    CHECK(peer.attach(7).value().envelope.attach_reply().state().state() == 2);
    REQUIRE_OK(peer.settle({7}, {}));
    CHECK(peer.attach(7).value().envelope.attach_reply().state().state() == 3);
  });
}
