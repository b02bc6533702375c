#include <catch2/catch.hpp>

#include "../../lfs/src/context/request_dedup.h"

namespace pif::lfs {

TEST_CASE("a request that was carried out is known, of its session only") {
  Repeats repeats;
  REQUIRE(!repeats.knows({7, 1}));
  repeats.add({7, 1});
  repeats.add({7, 1});
  REQUIRE(repeats.knows({7, 1}));
  REQUIRE(!repeats.knows({8, 1}));
  REQUIRE(!repeats.knows({7, 2}));
}

TEST_CASE("of a request without a session nothing is remembered") {
  Repeats repeats;
  repeats.add({0, 1});
  REQUIRE(!repeats.knows({0, 1}));
}

TEST_CASE("however many requests there are, memory is bounded: the oldest are forgotten") {
  Repeats repeats;
  for (std::uint64_t request = 1; request <= 65'537; ++request) repeats.add({7, request});
  REQUIRE(!repeats.knows({7, 1}));
  REQUIRE(repeats.knows({7, 2}));
  REQUIRE(repeats.knows({7, 65'537}));
}

}  // namespace pif::lfs
