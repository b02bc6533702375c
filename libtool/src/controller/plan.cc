#include <algorithm>
#include <numeric>

#include "pif/base/assert.h"
#include "pif/tool/exchange.h"

namespace pif::tool {
namespace {

// Even layouts: the rows of one LFS that go to the same destination are every lcm/width-th, and land there in steps of
// lcm/width' rows.
std::vector<RowMap> plan_plain(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to) {
  const std::uint64_t round = std::lcm<std::uint64_t>(from.width(), to.width());
  const std::uint64_t period = round / from.width();
  std::vector<RowMap> maps;
  for (std::uint64_t k = 0; k < std::min(period, rows.size()); ++k) {
    const Cell cell = to.locate(from.record_at({lfs, rows.begin + k}));
    RowMap map;
    map.to = cell.lfs;
    map.count = (rows.size() - k + period - 1) / period;
    map.source_first = k;
    map.source_stride = period;
    map.first = cell.row;
    map.stride = round / to.width();
    maps.push_back(std::move(map));
  }
  return maps;
}

// Where distances vary on either side: record by record.
std::vector<RowMap> plan_cells(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to) {
  std::vector<RowMap> maps;
  std::vector<std::size_t> map_of(to.width(), SIZE_MAX);
  for (std::uint64_t k = 0; k < rows.size(); ++k) {
    const Cell cell = to.locate(from.record_at({lfs, rows.begin + k}));
    PIF_ASSERT(cell.lfs < map_of.size(), cell.lfs, map_of.size());
    if (map_of[cell.lfs] == SIZE_MAX) {
      map_of[cell.lfs] = maps.size();
      maps.emplace_back();
      maps.back().to = cell.lfs;
      maps.back().source_first = k;
      maps.back().first = cell.row;
    }
    RowMap& map = maps[map_of[cell.lfs]];
    PIF_ASSERT(cell.row >= map.first && cell.row - map.first <= UINT32_MAX, cell.row, map.first);
    map.source_list.push_back(static_cast<std::uint32_t>(k - map.source_first));
    map.list.push_back(static_cast<std::uint32_t>(cell.row - map.first));
    ++map.count;
  }
  return maps;
}

}  // namespace

std::uint64_t RowMap::count_below(Row limit) const {
  if (limit <= first) return 0;
  PIF_ASSERT(!list.empty() || stride > 0, first, count);
  if (list.empty()) return std::min(count, (limit - first - 1) / stride + 1);
  const auto end = std::partition_point(list.begin(), list.end(), [&](std::uint32_t d) { return first + d < limit; });
  return static_cast<std::uint64_t>(end - list.begin());
}

std::vector<RowMap> plan_row_maps(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to) {
  auto maps = from.is_even() && to.is_even() ? plan_plain(from, lfs, rows, to) : plan_cells(from, lfs, rows, to);
  const auto add = [](std::uint64_t sum, const RowMap& map) { return sum + map.count; };
  const std::uint64_t planned = std::accumulate(maps.begin(), maps.end(), std::uint64_t{0}, add);
  PIF_ASSERT(planned == rows.size(), planned, rows.begin, rows.end);
  return maps;
}

}  // namespace pif::tool
