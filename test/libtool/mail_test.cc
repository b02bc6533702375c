#include "../../libtool/src/worker/replay_window.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace pif::tool {
namespace {

TEST_CASE("mail: letters that are overtaken or repeated count once each") {
  std::mt19937 random(7);
  std::vector<std::uint64_t> letters;
  for (std::uint64_t number = 1; number <= 2000; ++number) letters.insert(letters.end(), 1 + random() % 3, number);
  for (std::size_t begin = 0; begin + 40 < letters.size(); begin += 40) {
    std::shuffle(letters.begin() + static_cast<std::ptrdiff_t>(begin),
                 letters.begin() + static_cast<std::ptrdiff_t>(begin + 40), random);
  }
  ReplayWindow seen;
  std::set<std::uint64_t> came;
  for (const std::uint64_t number : letters) {
    const bool is_new = seen.is_new(number);
    CHECK(is_new == came.insert(number).second);
  }
}

TEST_CASE("mail: what is overtaken by more than can be remembered counts as lost") {
  ReplayWindow seen;
  CHECK(seen.is_new(1));
  CHECK(seen.is_new(66));
  CHECK(!seen.is_new(1));
  CHECK(seen.is_new(2));  // the 64th before
  CHECK(!seen.is_new(2));
  CHECK(seen.is_new(67));
  CHECK(!seen.is_new(2));
  CHECK(seen.is_new(200));
  CHECK(!seen.is_new(67));
  CHECK(seen.is_new(199));
}

}  // namespace
}  // namespace pif::tool
