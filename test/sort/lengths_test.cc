#include <algorithm>
#include <numeric>
#include <vector>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/keys/lengths.h"

namespace pif::sort {

TEST_CASE("so many fit as have room even if they are the longest, and hardly fewer than could") {
  REQUIRE(rc::check([] {
    auto all = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 5000));
    const auto bytes = *rc::gen::inRange<std::uint64_t>(0, 40'000);
    Lengths some, others;
    for (std::size_t i = 0; i < all.size(); ++i) (i % 2 == 0 ? some : others).add(all[i]);
    message::RunSizes sizes;
    others.pack(sizes);
    some.add(*Lengths::unpack(sizes));
    const std::uint64_t count = some.fit(bytes, 4);
    std::sort(all.rbegin(), all.rend());
    const auto taken = [&](std::uint64_t most) {
      const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(most, all.size()));
      return std::accumulate(all.begin(), end, std::uint64_t{4} * static_cast<std::uint64_t>(end - all.begin()));
    };
    RC_ASSERT(taken(count) <= bytes);
    if (count < all.size())
      RC_ASSERT(taken(2 * count + 2) > bytes / 2);  // lengths of a class differ by less than a factor of two
    if (count >= all.size()) RC_ASSERT(count == all.size() || count == UINT64_MAX);
  }));
}

TEST_CASE("many of one length count as so many") {
  Lengths lengths;
  lengths.add(100, 1000);
  lengths.add(1 << 20);
  CHECK(lengths.fit((1 << 20) + 4 + 10 * 104, 4) == 11);
  CHECK(lengths.fit(1 << 20, 4) == 0);
  CHECK(lengths.fit(1 << 21, 4) == UINT64_MAX);
  CHECK(!Lengths::unpack(message::RunSizes()));
}

}  // namespace pif::sort
