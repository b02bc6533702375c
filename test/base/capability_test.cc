#include "pif/base/capability.h"

#include <algorithm>
#include <limits>
#include <string>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace pif {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

ClusterKey key_of(unsigned char seed) {
  ClusterKey key;
  for (auto& byte : key.bytes) byte = static_cast<std::byte>(seed += 29);
  return key;
}

Capability sample() { return {FileId(77), 1000, kMayRead | kMayWrite, 5, kNow + kCapabilitySeconds}; }
Credential sample_credential() { return {SessionId(12), 1000, {1000, 27, 4}, kNow + kCapabilitySeconds}; }

// Every packed string that differs from `packed` in one bit is refused by `verify`.
template <typename Verify>
void refuses_every_flipped_bit(const std::string& packed, Verify verify) {
  REQUIRE(verify(packed));
  for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
    std::string forged = packed;
    forged[bit / 8] = static_cast<char>(forged[bit / 8] ^ (1 << (bit % 8)));
    CAPTURE(bit);
    const auto result = verify(forged);
    REQUIRE_FALSE(result);
    REQUIRE(result.error().code == Code::kBadCapability);
  }
}

// Every prefix, and the string with more bytes behind it, is refused by `verify` (which must not read past the end).
template <typename Verify>
void refuses_every_other_length(const std::string& packed, Verify verify) {
  for (std::size_t length = 0; length < packed.size(); ++length) REQUIRE_FALSE(verify(packed.substr(0, length)));
  for (std::size_t extra = 1; extra < 40; ++extra) REQUIRE_FALSE(verify(packed + std::string(extra, '\0')));
}

TEST_CASE("a capability comes back as it was minted") {
  REQUIRE(rc::check([] {
    const Capability minted{FileId(*rc::gen::arbitrary<std::uint64_t>()), *rc::gen::arbitrary<std::uint32_t>(),
                            *rc::gen::arbitrary<std::uint32_t>(), *rc::gen::arbitrary<std::uint64_t>(),
                            *rc::gen::inRange<std::int64_t>(kNow, kNow + 1000)};
    const auto back = verify_capability(key_of(1), mint(key_of(1), minted), kNow);
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->file == minted.file);
    RC_ASSERT(back->uid == minted.uid);
    RC_ASSERT(back->rights == minted.rights);
    RC_ASSERT(back->epoch == minted.epoch);
    RC_ASSERT(back->expiry == minted.expiry);
  }));
}

TEST_CASE("a capability with any bit flipped is refused") {
  refuses_every_flipped_bit(mint(key_of(1), sample()),
                            [](const std::string& s) { return verify_capability(key_of(1), s, kNow); });
}

TEST_CASE("a capability of another length is refused") {
  refuses_every_other_length(mint(key_of(1), sample()),
                             [](const std::string& s) { return verify_capability(key_of(1), s, kNow); });
}

TEST_CASE("a capability of another cluster is refused") {
  const auto result = verify_capability(key_of(2), mint(key_of(1), sample()), kNow);
  CHECK(result.error().text == "the capability is not one this cluster issued");
}

TEST_CASE("a capability lives until its expiry and the allowed clock skew, and not a second longer") {
  const std::string packed = mint(key_of(1), sample());
  const std::int64_t last = sample().expiry + kClockSkewSeconds;
  CHECK(verify_capability(key_of(1), packed, last));
  const auto late = verify_capability(key_of(1), packed, last + 1);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Code::kBadCapability);
  CHECK_THAT(late.error().text,
             Catch::StartsWith("the capability expired 31 s ago by the clock of this host, where it is "));
  CHECK_THAT(late.error().text, Catch::Contains("differ by about 31 s: see `pif doctor`"));
}

TEST_CASE("an expiry at the end of time is neither overflow nor expired") {
  Capability forever = sample();
  forever.expiry = std::numeric_limits<std::int64_t>::max();
  CHECK(verify_capability(key_of(1), mint(key_of(1), forever), kNow));
}

TEST_CASE("a capability grants its own rights on its own file to its own user") {
  const Capability capability = sample();
  CHECK(require(capability, FileId(77), kMayRead, 1000));
  CHECK(require(capability, FileId(77), kMayRead | kMayWrite, 1000));
}

TEST_CASE("a capability grants nothing to another user, on another file, or beyond its rights") {
  const Capability capability = sample();
  for (const auto& refused :
       {require(capability, FileId(77), kMayRead, 1001), require(capability, FileId(78), kMayRead, 1000),
        require(capability, FileId(77), kMayCreate, 1000),
        require(capability, FileId(77), kMayRead | kMayManage, 1000)}) {
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadCapability);
  }
}

TEST_CASE("refusals name file, rights and user") {
  const Capability capability = sample();
  CHECK(require(capability, FileId(78), kMayRead, 1000).error().text == "the capability is for file 4d, not 4e");
  CHECK(require(capability, FileId(77), kMayRead | kMayCreate, 1000).error().text == "the capability lacks rights 0x4");
  CHECK(require(capability, FileId(77), kMayRead, 0).error().text == "the capability was issued to uid 1000, not 0");
}

TEST_CASE("only a manager's capability may be for any file") {
  Capability any = sample();
  any.file = FileId(0);
  CHECK_FALSE(require(any, FileId(77), kMayRead, 1000));
  any.rights |= kMayManage;
  CHECK(require(any, FileId(77), kMayRead, 1000));
}

TEST_CASE("a manager's capability for one file is for that file only") {
  Capability one = sample();
  one.rights |= kMayManage;
  CHECK_FALSE(require(one, FileId(78), kMayManage, 1000));
}

TEST_CASE("a credential comes back as it was minted") {
  const auto back = verify_credential(key_of(1), mint(key_of(1), sample_credential()), kNow);
  REQUIRE(back);
  CHECK(back->session == SessionId(12));
  CHECK(back->uid == 1000);
  CHECK(back->gids == std::vector<std::uint32_t>{1000, 27, 4});
  CHECK(back->expiry == sample_credential().expiry);
}

TEST_CASE("a credential carries as many groups as fit, the primary first") {
  Credential many = sample_credential();
  for (std::uint32_t gid = 0; gid < 100; ++gid) many.gids.push_back(gid);
  const auto back = verify_credential(key_of(1), mint(key_of(1), many), kNow);
  REQUIRE(back);
  REQUIRE(back->gids.size() == kGroupsMax);
  CHECK(std::equal(back->gids.begin(), back->gids.end(), many.gids.begin()));
}

TEST_CASE("a credential with any bit flipped, of another length, or expired is refused") {
  const std::string packed = mint(key_of(1), sample_credential());
  const auto verify = [](const std::string& s) { return verify_credential(key_of(1), s, kNow); };
  refuses_every_flipped_bit(packed, verify);
  refuses_every_other_length(packed, verify);
  const auto late = verify_credential(key_of(1), packed, sample_credential().expiry + kClockSkewSeconds + 1);
  CHECK_THAT(late.error().text,
             Catch::StartsWith("the credential expired 31 s ago by the clock of this host, where it is "));
  CHECK_THAT(late.error().text, Catch::Contains("differ by about 31 s: see `pif doctor`"));
}

TEST_CASE("a credential is no capability and a capability no credential") {
  CHECK_FALSE(verify_capability(key_of(1), mint(key_of(1), sample_credential()), kNow));
  CHECK_FALSE(verify_credential(key_of(1), mint(key_of(1), sample()), kNow));
}

}  // namespace
}  // namespace pif
