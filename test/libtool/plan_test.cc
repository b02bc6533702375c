#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <map>

#include "pif/tool/exchange.h"

namespace pif::tool {
namespace {

parity::Layout layout(std::uint32_t width, std::vector<std::uint32_t> bevies = {}) {
  return *parity::Layout::make(width, std::move(bevies));
}

// Moves every record by plan, block by block, and checks that each comes to its place, once, in order per destination.
void check_plan(const parity::Layout& from, const parity::Layout& to, std::uint64_t records, std::uint64_t block) {
  std::map<std::pair<LfsIndex, Row>, RecordNumber> placed;
  for (LfsIndex lfs = 0; lfs < from.width(); ++lfs) {
    const std::uint64_t rows = from.rows(lfs, records);
    std::map<LfsIndex, Row> last;
    for (Row begin = 0; begin < rows; begin += block) {
      std::map<LfsIndex, int> maps;
      for (const RowMap& map : plan_row_maps(from, lfs, {begin, std::min(begin + block, rows)}, to)) {
        REQUIRE(++maps[map.to] == 1);
        for (std::uint64_t i = 0; i < map.count; ++i) {
          const RecordNumber record = from.record_at({lfs, begin + map.source(i)});
          REQUIRE(to.locate(record) == Cell{map.to, map.row(i)});
          REQUIRE(placed.emplace(std::pair{map.to, map.row(i)}, record).second);
          REQUIRE((!last.contains(map.to) || last[map.to] < map.row(i)));
          last[map.to] = map.row(i);
        }
      }
    }
  }
  REQUIRE(placed.size() == records);
}

TEST_CASE("every record of a file comes to its place once, between any two widths up to nine") {
  for (std::uint32_t p = 1; p <= 9; ++p) {
    for (std::uint32_t q = 1; q <= 9; ++q) {
      for (const std::uint64_t records : {0u, 1u, 8u, 64u, 131u}) check_plan(layout(p), layout(q), records, 5);
    }
  }
}

TEST_CASE("records come to their places from and to layouts with bevies") {
  const std::vector<parity::Layout> layouts = {layout(3), layout(4, {2, 2}), layout(8, {4, 4}),
                                               layout(10, {2, 3, 2, 3})};
  for (const auto& from : layouts) {
    for (const auto& to : layouts) check_plan(from, to, 97, 7);
  }
}

TEST_CASE("a map's rows below a limit are those that are below it one by one") {
  REQUIRE(rc::check([] {
    const auto from = layout(*rc::gen::inRange<std::uint32_t>(1, 10));
    const auto to = *rc::gen::element(layout(5), layout(8, {4, 4}), layout(1));
    const auto rows = *rc::gen::inRange<std::uint64_t>(1, 200);
    const auto limit = *rc::gen::inRange<std::uint64_t>(0, 300);
    for (const RowMap& map : plan_row_maps(from, 0, {0, rows}, to)) {
      std::uint64_t below = 0;
      while (below < map.count && map.row(below) < limit) ++below;
      RC_ASSERT(map.count_below(limit) == below);
    }
  }));
}

}  // namespace
}  // namespace pif::tool
