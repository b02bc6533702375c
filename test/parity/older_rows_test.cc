#include "pif/parity/older_rows.h"

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "layouts.h"

namespace pif::parity {
namespace {

// The rows of one LFS as they were stored, one after another: which are rows at all.
std::vector<Row> by_hand(std::uint32_t size, std::uint32_t column, std::uint64_t stored) {
  std::vector<Row> out;
  for (Row row = 0; row < stored; ++row)
    if (row % size != column) out.push_back(row);
  return out;
}

TEST_CASE("a stored row of an older file is a data cell of the thesis, the empty ones are its parity cells") {
  for (std::uint32_t size = 2; size <= 9; ++size) {
    for (std::uint32_t column = 0; column < size; ++column) {
      const OlderRows rows(size, column);
      const auto expected = by_hand(size, column, 100);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(size, column, i);
        CHECK(rows.stored(i) == expected[i]);
        CHECK_FALSE(rows.is_empty(expected[i]));
        CHECK(rows.stored_count(i + 1) == expected[i] + 1);
      }
      CHECK(rows.stored_count(0) == 0);
      for (std::uint64_t stored = 0; stored < 100; ++stored) {
        CAPTURE(size, column, stored);
        CHECK(rows.count(stored) == by_hand(size, column, stored).size());
        CHECK(rows.is_empty(stored) == !std::count(expected.begin(), expected.end(), stored));
      }
    }
  }
}

TEST_CASE("the column of an LFS of an older file is its place in its bevy") {
  const Layout layout = layout_of({2, 3, 2, 3});
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> columns = {{2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2},
                                                                        {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}};
  for (LfsIndex lfs = 0; lfs < columns.size(); ++lfs) {
    const OlderRows expected(columns[lfs].first, columns[lfs].second);
    for (Row row = 0; row < 20; ++row) CHECK(OlderRows::of(layout, lfs).stored(row) == expected.stored(row));
  }
}

}  // namespace
}  // namespace pif::parity
