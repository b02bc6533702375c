#include "pif/base/key_ring.h"

#include <catch2/catch.hpp>

namespace pif {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

ClusterKey key_of(unsigned char seed) {
  ClusterKey key;
  for (auto& byte : key.bytes) byte = static_cast<std::byte>(seed += 29);
  return key;
}

std::string signed_by(const KeyRing& keys) { return mint(keys, Capability{FileId(7), 1000, kMayRead, 0, kNow + 600}); }
bool is_good(const KeyRing& keys, const std::string& packed) {
  return verify_capability(keys, packed, kNow).has_value();
}

}  // namespace

TEST_CASE("while a key is changed both are accepted, one signs, and nothing is refused in between") {
  const ClusterKey before = key_of(1), after = key_of(2);
  // In each step the ring of one daemon, and of one that is a step behind.
  const std::pair<ClusterKey, std::optional<ClusterKey>> steps[] = {{before, {}}, {before, after}, {after, before}};
  KeyRing first(before), behind(before);
  for (const auto& [signing, accepted] : steps) {
    first.set(signing, accepted);
    CHECK(is_good(behind, signed_by(first)));
    CHECK(is_good(first, signed_by(behind)));
    behind.set(signing, accepted);
    CHECK(is_good(first, signed_by(behind)));
  }
  first.set(after, std::nullopt);
  CHECK(is_good(first, signed_by(KeyRing(after))));
  CHECK_FALSE(is_good(first, signed_by(KeyRing(before))));
  const auto refused = verify_credential(first, mint(before, Credential{SessionId(1), 0, {0}, kNow + 9}), kNow);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadCapability);
}

TEST_CASE("copies are of one ring, whose version tells that something may be accepted no more") {
  KeyRing ring(key_of(1));
  const KeyRing copy = ring;
  const std::uint64_t version = copy.version();
  ring.set(key_of(1), std::nullopt);  // as it was
  CHECK(copy.version() == version);
  ring.set(key_of(1), key_of(2));
  CHECK(copy.version() > version);
  CHECK(is_good(copy, signed_by(KeyRing(key_of(2)))));
}

}  // namespace pif
