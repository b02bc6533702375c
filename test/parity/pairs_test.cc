// Whether a file lies on pairs of bevies.
#include "pif/parity/pairs.h"

#include <catch2/catch.hpp>

namespace pif::parity {
namespace {

using Numbers = std::vector<std::uint32_t>;

TEST_CASE("a file lies on pairs if its companions are those of a pair, however they are turned") {
  const std::vector<BevyPair> pairs = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  const Numbers two = {2, 2}, four = {2, 2, 2, 2};
  CHECK(lies_on_pairs(Numbers{1, 2, 3, 4}, two, pairs));
  CHECK(lies_on_pairs(Numbers{8, 7, 6, 5}, two, pairs));
  CHECK(lies_on_pairs(Numbers{1, 2, 8, 7, 4, 3, 5, 6}, four, pairs));  // bevies 0 and 2, 1 and 3 are companions
  CHECK_FALSE(lies_on_pairs(Numbers{1, 2, 3, 4, 5, 6, 7, 8}, four, pairs));
  CHECK_FALSE(lies_on_pairs(Numbers{1, 3, 2, 4}, two, pairs));
  CHECK_FALSE(lies_on_pairs(Numbers{1, 2, 5, 6}, two, pairs));
  CHECK_FALSE(lies_on_pairs(Numbers{1, 2, 3, 4}, two, {}));
}

}  // namespace
}  // namespace pif::parity
