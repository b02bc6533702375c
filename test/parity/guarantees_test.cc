// What placement with parity guarantees, and where it stops: the table in docs/ARCHITECTURE.md "Placement". Where the
// thesis claims more than holds, a test shows the counterexample.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "layouts.h"

namespace pif::parity {
namespace {

std::uint32_t largest(const Bevies& sizes) { return *std::max_element(sizes.begin(), sizes.end()); }

Cell parity_cell(const Layout& layout, RecordNumber n) { return layout.parity_of(layout.locate(n)); }

// The largest w for which any w consecutive records have distinct values of `what`: the least distance at which a value
// comes again.
template <typename What>
std::uint64_t distinct_window(const Layout& layout, What what) {
  std::map<decltype(what(0)), RecordNumber> last;
  std::uint64_t window = std::numeric_limits<std::uint64_t>::max();
  for (RecordNumber n = 0; n < two_periods(layout); ++n) {
    const auto [at, is_new] = last.try_emplace(what(n), n);
    if (!is_new) window = std::min(window, n - at->second);
    at->second = n;
  }
  return window;
}

std::uint64_t data_lfs_window(const Layout& layout) {
  return distinct_window(layout, [&](RecordNumber n) { return layout.locate(n).lfs; });
}

std::uint64_t parity_lfs_window(const Layout& layout) {
  return distinct_window(layout, [&](RecordNumber n) { return parity_cell(layout, n).lfs; });
}

// Most LFSs that are in both sets, data and parity, of any `length` consecutive records.
std::uint64_t most_in_both(const Layout& layout, std::uint64_t length) {
  std::uint64_t most = 0;
  for (RecordNumber first = 0; first < two_periods(layout) - length; ++first) {
    std::set<LfsIndex> data;
    for (RecordNumber n = first; n < first + length; ++n) data.insert(layout.locate(n).lfs);
    std::set<LfsIndex> both;
    for (RecordNumber n = first; n < first + length; ++n)
      if (const LfsIndex lfs = parity_cell(layout, n).lfs; data.count(lfs) != 0) both.insert(lfs);
    most = std::max<std::uint64_t>(most, both.size());
  }
  return most;
}

void for_each_layout(const std::vector<Bevies>& all, const std::function<void(const Bevies&, const Layout&)>& check) {
  for (const auto& sizes : all) {
    CAPTURE(sizes);
    check(sizes, layout_of(sizes));
  }
}

TEST_CASE("no parity record shares an LFS with a data record of its group") {
  for_each_layout(sample_bevies(), [](const Bevies&, const Layout& layout) {
    for (RecordNumber n = 0; n < two_periods(layout); ++n) {
      const Cell parity = parity_cell(layout, n);
      for (const Cell member : layout.members_of(parity)) REQUIRE(member.lfs != parity.lfs);
    }
  });
}

TEST_CASE("losing any one LFS of each pair of companion bevies leaves every record computable") {
  for_each_layout(sample_bevies(), [](const Bevies& sizes, const Layout& layout) {
    const std::size_t half = sizes.size() / 2;
    for (RecordNumber n = 0; n < two_periods(layout); ++n) {
      const Cell lost = layout.locate(n);
      const std::size_t pair = bevy_of(sizes, lost.lfs).first % half;
      const Cell parity = layout.parity_of(lost);
      auto needed = layout.members_of(parity);
      needed.erase(std::find(needed.begin(), needed.end(), lost));
      needed.push_back(parity);
      // All that is needed is on other LFSs of the same pair, of which no second one is lost; so pairs do not matter
      // to one another.
      for (const Cell cell : needed) {
        REQUIRE(cell.lfs != lost.lfs);
        REQUIRE(bevy_of(sizes, cell.lfs).first % half == pair);
      }
    }
  });
}

TEST_CASE("any p consecutive records are on distinct LFSs when B is 2") {
  for_each_layout({{2, 2}, {2, 2, 2, 2}, {2, 2, 2, 2, 2, 2}},
                  [](const Bevies&, const Layout& layout) { REQUIRE(data_lfs_window(layout) == layout.width()); });
}

TEST_CASE("any p - 2 consecutive records are on distinct LFSs, and with B of 3 or more no more than that") {
  for_each_layout(uniform_bevies(), [](const Bevies& sizes, const Layout& layout) {
    REQUIRE(data_lfs_window(layout) >= layout.width() - 2);
    if (sizes[0] >= 3) REQUIRE(data_lfs_window(layout) < layout.width());
  });
  for_each_layout(mixed_bevies(),
                  [](const Bevies&, const Layout& layout) { REQUIRE(data_lfs_window(layout) >= layout.width() - 2); });
}

TEST_CASE("lemma 4 claims p - 1 distinct LFSs, but records 18 and 24 of figure 4.1 are both on LFS 1") {
  const Layout layout = layout_of({4, 4});
  CHECK(layout.locate(18).lfs == 1);
  CHECK(layout.locate(24).lfs == 1);
  CHECK(data_lfs_window(layout) == 6);
}

TEST_CASE("the parity records of any p consecutive records are on distinct LFSs") {
  for_each_layout(sample_bevies(),
                  [](const Bevies&, const Layout& layout) { REQUIRE(parity_lfs_window(layout) >= layout.width()); });
}

TEST_CASE("any p consecutive records have distinct parity records; any 2p when B is 2") {
  for_each_layout(sample_bevies(), [](const Bevies& sizes, const Layout& layout) {
    const auto window = distinct_window(layout, [&](RecordNumber n) {
      const Cell cell = parity_cell(layout, n);
      return std::make_pair(cell.lfs, cell.row);
    });
    REQUIRE(window >= layout.width() * (largest(sizes) == 2 ? 2 : 1));
  });
}

// B - 2 in even bevies, B - 1 in odd ones.
std::uint64_t bound_in_both(const Bevies& sizes) {
  std::uint64_t bound = 0;
  for (const std::uint64_t size : sizes) bound = std::max(bound, (size - 1) / 2 * 2);
  return bound;
}

TEST_CASE("of any p/2 - 1 consecutive records at most B - 2 LFSs hold both data and parity, B - 1 when B is odd") {
  for_each_layout(sample_bevies(), [](const Bevies& sizes, const Layout& layout) {
    const std::uint64_t length = layout.width() / 2 - 1;
    REQUIRE(data_lfs_window(layout) >= length);
    REQUIRE(parity_lfs_window(layout) >= length);
    REQUIRE(most_in_both(layout, length) == bound_in_both(sizes));
  });
}

TEST_CASE("theorem 2 claims at most one LFS with both, but records 5 and 6 on two bevies of three have two") {
  const Layout layout = layout_of({3, 3});
  CHECK(layout.locate(5).lfs == 3);
  CHECK(parity_cell(layout, 6).lfs == 3);
  CHECK(layout.locate(6).lfs == 2);
  CHECK(parity_cell(layout, 5).lfs == 2);
  CHECK(most_in_both(layout_of({4, 4}), 3) == 2);
}

TEST_CASE("every cycle over the LFSs takes B consecutive records from each bevy") {
  for_each_layout(sample_bevies(), [](const Bevies& sizes, const Layout& layout) {
    for (RecordNumber n = 0; n < two_periods(layout); ++n) {
      const auto in_cycle = static_cast<LfsIndex>(n % layout.width());
      REQUIRE(bevy_of(sizes, layout.locate(n).lfs).first == bevy_of(sizes, in_cycle).first);
    }
  });
}

TEST_CASE("a superblock contains whole groups only") {
  for_each_layout(sample_bevies(), [](const Bevies&, const Layout& layout) {
    const std::uint64_t size = superblock(layout);
    for (RecordNumber n = 0; n < 3 * size; ++n)
      for (const Cell member : layout.members_of(parity_cell(layout, n)))
        REQUIRE(layout.record_at(member) / size == n / size);
  });
}

TEST_CASE("in a superblock a column contributes equally to every companion column but its own, and never to that") {
  for_each_layout(sample_bevies(), [](const Bevies& sizes, const Layout& layout) {
    std::map<std::pair<LfsIndex, LfsIndex>, std::uint64_t> contributions;
    for (RecordNumber n = 0; n < superblock(layout); ++n) {
      const Cell data = layout.locate(n);
      ++contributions[{data.lfs, layout.parity_of(data).lfs}];
    }
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) {
      const auto [bevy, size] = bevy_of(sizes, lfs);
      const LfsIndex column = lfs - first_of(sizes, bevy);
      const LfsIndex companion = first_of(sizes, (bevy + sizes.size() / 2) % sizes.size());
      const std::uint64_t share = superblock(layout) / layout.width() / (size - 1);
      for (std::uint32_t y = 0; y < size; ++y)
        REQUIRE(contributions[{lfs, companion + y}] == (y == column ? 0 : share));
    }
  });
}

TEST_CASE("parity costs one record for each B - 1") {
  for_each_layout(uniform_bevies(), [](const Bevies& sizes, const Layout& layout) {
    const std::uint64_t records = two_periods(layout);
    std::uint64_t parity = 0;
    for (LfsIndex lfs = 0; lfs < layout.width(); ++lfs) parity += layout.parity_rows(lfs, records);
    REQUIRE(records == parity * (sizes[0] - 1));
  });
}

}  // namespace
}  // namespace pif::parity
