#include <catch2/catch.hpp>

#include "../../lfs/src/context/request_dedup.h"

namespace pif::lfs {

TEST_CASE("a request that was carried out is known, of its session only") {
  RequestDedup dedup;
  REQUIRE(!dedup.knows({7, 1}));
  dedup.add({7, 1});
  dedup.add({7, 1});
  REQUIRE(dedup.knows({7, 1}));
  REQUIRE(!dedup.knows({8, 1}));
  REQUIRE(!dedup.knows({7, 2}));
}

TEST_CASE("of a request without a session nothing is remembered") {
  RequestDedup dedup;
  dedup.add({0, 1});
  REQUIRE(!dedup.knows({0, 1}));
}

TEST_CASE("however many requests there are, memory is bounded: the oldest are forgotten") {
  RequestDedup dedup;
  for (std::uint64_t request = 1; request <= 65'537; ++request) dedup.add({7, request});
  REQUIRE(!dedup.knows({7, 1}));
  REQUIRE(dedup.knows({7, 2}));
  REQUIRE(dedup.knows({7, 65'537}));
}

}  // namespace pif::lfs
