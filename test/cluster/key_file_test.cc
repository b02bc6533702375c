// keys/cluster.key while the key is changed: on one host, and as it comes to others.
#include "pif/cluster/key_file.h"

#include <string>

#include <catch2/catch.hpp>

#include "folders.h"

namespace pif::cluster {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

// One host, and what its daemons go by.
struct Host {
  explicit Host(const std::string& key = {}) {
    cluster = create_cluster(folder / "fs", 1, 0, TcpMode::kNone).value();
    if (!key.empty()) {
      std::filesystem::remove(path());
      std::ofstream(path()) << key;
      REQUIRE(::chmod(path().c_str(), 0400) == 0);
    }
    watched.emplace(cluster, file());
  }
  std::string path() const { return folder / "fs/keys/cluster.key"; }
  KeyFile file() const { return load_key_file(cluster).value(); }
  std::string bytes() const { return contents(path()); }
  // Whether its daemons accept what another host's sign, at that time.
  bool accepts(const ClusterKey& key, std::int64_t now = kNow) {
    watched->look(now);
    return verify_credential(watched->ring(), mint(key, Credential{SessionId(1), 0, {0}, now + 9}), now).has_value();
  }
  ClusterKey signing(std::int64_t now = kNow) {
    watched->look(now);
    return watched->ring().signing();
  }

  TemporaryFolder folder;
  Cluster cluster;
  std::optional<WatchedKeys> watched;
};

bool same(const ClusterKey& a, const ClusterKey& b) { return a.bytes == b.bytes; }

}  // namespace

TEST_CASE("a key is changed on two hosts, step by step, and neither refuses the other in between") {
  Host one, two(one.bytes());
  const ClusterKey before = one.signing();
  const auto agree = [&] { return one.accepts(two.signing()) && two.accepts(one.signing()); };
  CHECK(agree());
  const KeyFile begun = begin_key_change(one.cluster).value();
  CHECK(same(one.signing(), before));
  CHECK(agree());
  REQUIRE(take_key_file(two.cluster.folder, one.bytes()));
  const KeyFile ended = end_key_change(one.cluster, kNow, kOldKeySeconds).value();
  CHECK(ended.number == 1);
  CHECK(same(one.signing(), *begun.accepted));
  CHECK(same(two.signing(), before));
  CHECK(agree());
  REQUIRE(take_key_file(two.cluster.folder, one.bytes()));
  CHECK(same(two.signing(), one.signing()));
  CHECK(mode_of(two.path()) == 0400);

  CHECK(two.accepts(before, kNow + kOldKeySeconds - 1));
  CHECK_FALSE(two.accepts(before, kNow + kOldKeySeconds));
  CHECK(two.accepts(one.signing(), kNow + kOldKeySeconds));
}

TEST_CASE("a change that has begun goes on with the key that it began with") {
  Host host;
  const KeyFile begun = begin_key_change(host.cluster).value();
  CHECK(begun.is_changing());
  CHECK(same(*begin_key_change(host.cluster).value().accepted, *begun.accepted));
  REQUIRE(end_key_change(host.cluster, kNow, 60));
  CHECK_FALSE(host.file().is_changing());
  CHECK(host.file().has_old(kNow + 59));
  CHECK_FALSE(host.file().has_old(kNow + 60));
}

TEST_CASE("an older key never replaces a newer one, and another file system's is refused") {
  Host one, two(one.bytes()), stranger;
  const std::string first = one.bytes();
  REQUIRE(begin_key_change(one.cluster));
  const std::string changing = one.bytes();
  REQUIRE(end_key_change(one.cluster, kNow, 60));
  const std::string second = one.bytes();
  REQUIRE(take_key_file(two.cluster.folder, second));  // it was off during the first step
  for (const std::string& older : {first, changing, second}) {
    REQUIRE(take_key_file(two.cluster.folder, older));
    CHECK(two.bytes() == second);
  }
  CHECK(take_key_file(stranger.cluster.folder, first).error().code == Code::kInvalid);
  CHECK(take_key_file(two.cluster.folder, "short").error().code == Code::kInvalid);
}

TEST_CASE("a key file is as docs/FORMAT.md draws it, and one of other lengths is damaged") {
  KeyFile keys;
  for (auto& byte : keys.signing.bytes) byte = std::byte{0xaa};
  CHECK(format_key_file(keys) == std::string(32, '\xaa'));
  keys.number = 3;
  keys.until = 0x65;
  keys.accepted.emplace();
  for (auto& byte : keys.accepted->bytes) byte = std::byte{0xbb};
  const std::string bytes = format_key_file(keys);
  CHECK(bytes ==
        std::string(32, '\xaa') + std::string("\3\0\0\0\0\0\0\0\x65\0\0\0\0\0\0\0", 16) + std::string(32, '\xbb'));
  const KeyFile back = parse_key_file(bytes).value();
  CHECK(format_key_file(back) == bytes);
  for (const std::size_t length : {0, 31, 33, 79, 81})
    CHECK(parse_key_file(std::string(length, 'x')).error().code == Code::kCorrupt);
}

TEST_CASE("a key file that cannot be read any more changes nothing for the daemons") {
  Host host;
  const ClusterKey before = host.signing();
  REQUIRE(::chmod(host.path().c_str(), 0600) == 0);
  std::ofstream(host.path()) << "damaged";
  CHECK(same(host.signing(), before));
}

}  // namespace pif::cluster
