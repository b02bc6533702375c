// Rights that expire.
#include <catch2/catch.hpp>

#include "pif/access/grant.h"

namespace pif::access {
namespace {

FileParts parts_until(std::int64_t until) {
  FileParts parts;
  parts.path = "/f";
  parts.capability = "old";
  parts.capability_until = until;
  return parts;
}

}  // namespace

TEST_CASE("a right is renewed in its last minute, not before") {
  int asked = 0;
  Grant grant(parts_until(1000), [&asked] {
    ++asked;
    return Result<Grant::Capability>(Grant::Capability{"new", 2000});
  });
  CHECK(grant.keep(939).has_value());
  CHECK(asked == 0);
  CHECK(grant.keep(940).has_value());
  CHECK(asked == 1);
  CHECK(grant.capability() == "new");
  CHECK(grant.keep(1939).has_value());
  CHECK(asked == 1);
}

TEST_CASE("a right that may be forgotten is renewed by the next operation, once") {
  int asked = 0;
  Grant grant(parts_until(1000), [&asked] {
    ++asked;
    return Result<Grant::Capability>(Grant::Capability{"new", 1000});
  });
  grant.renew_next();
  CHECK(grant.keep(10).has_value());
  CHECK(grant.keep(10).has_value());
  CHECK(asked == 1);
}

TEST_CASE("while nobody renews a right the old one is used until it expires, and it is asked for every ten seconds") {
  int asked = 0;
  Grant grant(parts_until(1000), [&asked]() -> Result<Grant::Capability> {
    ++asked;
    return fail(Code::kUnavailable, "the server is down");
  });
  for (std::int64_t now = 940; now < 960; ++now) CHECK(grant.keep(now).has_value());
  CHECK(asked == 2);
  CHECK(grant.capability() == "old");
  const auto late = grant.keep(1000);
  REQUIRE(!late);
  CHECK(late.error().code == Code::kUnavailable);
}

TEST_CASE("a right to a file that is gone ends at once") {
  Grant grant(parts_until(1000), []() -> Result<Grant::Capability> { return fail(Code::kStaleFile, "deleted"); });
  const auto kept = grant.keep(950);
  REQUIRE(!kept);
  CHECK(kept.error().code == Code::kStaleFile);
}

TEST_CASE("somebody else's right is not renewed") {
  Grant grant(parts_until(1000), {});
  CHECK(grant.is_borrowed());
  CHECK(grant.keep(2000).has_value());  // the LFS says that it has expired
  const auto renewed = grant.renew();
  REQUIRE(!renewed);
  CHECK(renewed.error().code == Code::kBadCapability);
}

}  // namespace pif::access
