#include <algorithm>
#include <numeric>

#include "pif/tool/exchange.h"

namespace pif::tool {
namespace {

// Plain layouts: the rows of one LFS that go to the same destination are every lcm/width-th, and land there in steps of
// lcm/width' rows.
std::vector<Strip> plan_plain(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to) {
  const std::uint64_t round = std::lcm<std::uint64_t>(from.width(), to.width());
  const std::uint64_t period = round / from.width();
  std::vector<Strip> strips;
  for (std::uint64_t k = 0; k < std::min(period, rows.size()); ++k) {
    const Cell cell = to.locate(*from.record_at({lfs, rows.begin + k}));
    Strip strip;
    strip.to = cell.lfs;
    strip.count = (rows.size() - k + period - 1) / period;
    strip.source_first = k;
    strip.source_stride = period;
    strip.first = cell.row;
    strip.stride = round / to.width();
    strips.push_back(std::move(strip));
  }
  return strips;
}

// With bevies on either side: record by record.
std::vector<Strip> plan_cells(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to) {
  std::vector<Strip> strips;
  std::vector<std::size_t> strip_of(to.width(), SIZE_MAX);
  for (std::uint64_t k = 0; k < rows.size(); ++k) {
    const auto record = from.record_at({lfs, rows.begin + k});
    if (!record) continue;  // a parity cell
    const Cell cell = to.locate(*record);
    if (strip_of[cell.lfs] == SIZE_MAX) {
      strip_of[cell.lfs] = strips.size();
      strips.emplace_back();
      strips.back().to = cell.lfs;
      strips.back().source_first = k;
      strips.back().first = cell.row;
    }
    Strip& strip = strips[strip_of[cell.lfs]];
    strip.source_list.push_back(static_cast<std::uint32_t>(k - strip.source_first));
    strip.list.push_back(static_cast<std::uint32_t>(cell.row - strip.first));
    ++strip.count;
  }
  return strips;
}

}  // namespace

std::uint64_t Strip::count_below(Row limit) const {
  if (limit <= first) return 0;
  if (list.empty()) return std::min(count, (limit - first - 1) / stride + 1);
  const auto end = std::partition_point(list.begin(), list.end(), [&](std::uint32_t d) { return first + d < limit; });
  return static_cast<std::uint64_t>(end - list.begin());
}

std::vector<Strip> plan_strips(const parity::Layout& from, LfsIndex lfs, Range rows, const parity::Layout& to) {
  return from.has_parity() || to.has_parity() ? plan_cells(from, lfs, rows, to) : plan_plain(from, lfs, rows, to);
}

}  // namespace pif::tool
