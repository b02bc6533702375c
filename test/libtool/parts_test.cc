// A range that is cut into parts for threads.
#include "pif/tool/parts.h"

#include <vector>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace pif::tool {
namespace {

std::vector<Range> parts_of(Range whole, const PartsOptions& options) {
  const Parts parts(whole, options);
  std::vector<Range> all;
  for (std::size_t i = 0; i < parts.size(); ++i) all.push_back(parts[i]);
  return all;
}
using Ranges = std::vector<Range>;

}  // namespace

TEST_CASE("parts are about equal, and no more than threads") {
  CHECK(parts_of({0, 8}, {.most = 4}) == Ranges{{0, 2}, {2, 4}, {4, 6}, {6, 8}});
  CHECK(parts_of({5, 12}, {.most = 4}) == Ranges{{5, 6}, {6, 8}, {8, 10}, {10, 12}});
  CHECK(parts_of({0, 3}, {.most = 4}).size() == 3);
  CHECK(parts_of({UINT64_MAX - 3, UINT64_MAX}, {.most = 2}).back().end == UINT64_MAX);
}

TEST_CASE("a part of fewer than the least is not cut off") {
  CHECK(parts_of({0, 20}, {.most = 4, .least = 10}) == Ranges{{0, 10}, {10, 20}});
  CHECK(parts_of({0, 19}, {.most = 4, .least = 10}) == Ranges{{0, 19}});
}

TEST_CASE("parts begin at multiples of the unit, wherever the range begins") {
  CHECK(parts_of({7, 40}, {.most = 3, .unit = 8}) == Ranges{{7, 16}, {16, 24}, {24, 40}});
  CHECK(parts_of({1, 8}, {.most = 3, .unit = 8}) == Ranges{{1, 8}});
}

TEST_CASE("of an empty range there is one part, which is empty") {
  CHECK(parts_of({6, 6}, {.most = 4, .unit = 4}) == Ranges{{6, 6}});
  CHECK(parts_of({6, 6}, {.most = 0, .least = 0, .unit = 0}) == Ranges{{6, 6}});
}

TEST_CASE("parts are all of the range, and none is empty, or two units longer than another") {
  CHECK(rc::check("any range", [] {
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, 100);
    const Range whole{begin, begin + *rc::gen::inRange<std::uint64_t>(1, 1000)};
    const PartsOptions options{*rc::gen::inRange<std::uint64_t>(0, 20), *rc::gen::inRange<std::uint64_t>(0, 40),
                               *rc::gen::inRange<std::uint64_t>(0, 40)};
    std::uint64_t next = whole.begin, shortest = UINT64_MAX, longest = 0;
    for (const Range part : parts_of(whole, options)) {
      RC_ASSERT(part.begin == next);
      RC_ASSERT(!part.empty());
      next = part.end;
      shortest = std::min(shortest, part.size());
      longest = std::max(longest, part.size());
    }
    RC_ASSERT(next == whole.end);
    RC_ASSERT(longest - shortest < 2 * std::max<std::uint64_t>(options.unit, 1));
  }));
}

}  // namespace pif::tool
