#include "pif/parity/layout.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::parity {
namespace {

constexpr std::uint64_t kPeriodMax = std::uint64_t{1} << 40;  // records; see period.h

// Arithmetic inside one bevy of size B: rows r, columns c, and data records m numbered through the bevy in the order
// in which they are written, B - 1 to a row. Column c's data rows are numbered q, from 0, skipping its parity rows.

bool is_parity_row(std::uint64_t size, std::uint64_t column, Row row) { return row % size == column; }

// Data rows of `column` among the first `m` data records of the bevy.
std::uint64_t data_rows_of_column(std::uint64_t size, std::uint64_t column, std::uint64_t m) {
  const Row full = m / (size - 1);
  const std::uint64_t in_last = m % (size - 1);
  const std::uint64_t parity_rows = (full + size - 1 - column) / size;
  const std::uint64_t diagonal = full % size;
  const bool in_last_row = column != diagonal && column - (column > diagonal ? 1 : 0) < in_last;
  return full - parity_rows + (in_last_row ? 1 : 0);
}

// The row of data row q of `column`: its parity rows are c, c + B, c + 2B, ...
Row row_of_data_row(std::uint64_t size, std::uint64_t column, std::uint64_t q) {
  return q < column ? q : q + 1 + (q - column) / (size - 1);
}

Status check_bevies(std::uint32_t width, std::span<const std::uint32_t> sizes) {
  if (sizes.empty()) return {};
  if (sizes.size() % 2 != 0)
    return fail(
        Code::kInvalid,
        fmt::format("{} bevies are given: their number must be even, so that each has a companion", sizes.size()));
  std::uint64_t sum = 0;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a] < 2)
      return fail(Code::kInvalid, fmt::format("bevy {} has size {}: a bevy needs at least 2 LFSs", a, sizes[a]));
    sum += sizes[a];
  }
  const std::size_t half = sizes.size() / 2;
  for (std::size_t a = 0; a < half; ++a)
    if (sizes[a] != sizes[a + half])
      return fail(Code::kInvalid,
                  fmt::format("bevies {} and {} are companions and must have the same size, not {} and {}", a, a + half,
                              sizes[a], sizes[a + half]));
  if (sum != width)
    return fail(Code::kInvalid, fmt::format("the bevy sizes add up to {}, but the width is {}", sum, width));
  std::uint64_t cycles = 1;
  for (const std::uint32_t size : sizes) {
    cycles = std::lcm(cycles, std::uint64_t{size} - 1);
    if (cycles > kPeriodMax / width) return fail(Code::kInvalid, "the bevies have too many different sizes");
  }
  return {};
}

}  // namespace

Result<Layout> Layout::make(std::uint32_t width, std::vector<std::uint32_t> bevies) {
  if (width == 0 || width > kWidthMax)
    return fail(Code::kInvalid, fmt::format("width {} is not between 1 and {} LFSs", width, kWidthMax));
  PIF_TRY(check_bevies(width, bevies));
  Layout layout(width);
  const auto count = static_cast<std::uint32_t>(bevies.size());
  LfsIndex first = 0;
  for (std::uint32_t a = 0; a < count; ++a) {
    layout.bevies_.push_back({first, bevies[a], (a + count / 2) % count});
    layout.bevy_of_lfs_.insert(layout.bevy_of_lfs_.end(), bevies[a], a);
    first += bevies[a];
  }
  layout.sizes_ = std::move(bevies);
  return layout;
}

// Dibble 1990, 4.1.1, eq. (4.8).
Cell Layout::locate(RecordNumber n) const {
  if (!has_parity()) return plain_.locate(n);
  const Cell without_parity = plain_.locate(n);
  const Bevy& bevy = bevy_of(without_parity.lfs);
  const std::uint64_t m = without_parity.row * bevy.size + (without_parity.lfs - bevy.first);
  const Row row = m / (bevy.size - 1);
  const std::uint64_t d = m % (bevy.size - 1);
  const std::uint64_t column = d < row % bevy.size ? d : d + 1;
  return {bevy.first + static_cast<LfsIndex>(column), row};
}

std::optional<RecordNumber> Layout::record_at(Cell cell) const {
  if (!has_parity()) return plain_.record_at(cell);
  const Bevy& bevy = bevy_of(cell.lfs);
  const std::uint64_t column = cell.lfs - bevy.first;
  const std::uint64_t diagonal = cell.row % bevy.size;
  if (column == diagonal) return std::nullopt;
  const std::uint64_t m = cell.row * (bevy.size - 1) + (column < diagonal ? column : column - 1);
  return plain_.record_at({bevy.first + static_cast<LfsIndex>(m % bevy.size), m / bevy.size});
}

bool Layout::is_parity(Cell cell) const {
  if (!has_parity()) return false;
  const Bevy& bevy = bevy_of(cell.lfs);
  return is_parity_row(bevy.size, cell.lfs - bevy.first, cell.row);
}

// Dibble 1990, 4.1.1, eq. (4.2) to (4.4), the last as simplified in layout.h.
Cell Layout::parity_of(Cell data) const {
  PIF_ASSERT(has_parity() && !is_parity(data), data.lfs, data.row);
  const Bevy& bevy = bevy_of(data.lfs);
  const std::uint64_t column = data.lfs - bevy.first;
  const std::uint64_t i = (column + bevy.size + 1 - data.row % bevy.size) % (bevy.size + 1);
  return {bevies_[bevy.companion].first + static_cast<LfsIndex>(i - 1), data.row / bevy.size * bevy.size + i - 1};
}

// Dibble 1990, 4.1.1, eq. (4.5) to (4.7), with t up to B - 2: the printed bound gives one cell too many.
std::vector<Cell> Layout::members_of(Cell parity) const {
  PIF_ASSERT(is_parity(parity), parity.lfs, parity.row);
  const Bevy& bevy = bevy_of(parity.lfs);
  const LfsIndex companion_first = bevies_[bevy.companion].first;
  const Row block = parity.row / bevy.size * bevy.size;
  std::vector<Cell> members;
  members.reserve(bevy.size - 1);
  for (std::uint32_t t = 0; t + 1 < bevy.size; ++t) {
    const std::uint32_t g = parity.lfs - bevy.first + 1 + t * (bevy.size + 1);
    members.push_back({companion_first + g % bevy.size, block + g / bevy.size});
  }
  return members;
}

std::uint64_t Layout::data_rows(LfsIndex lfs, std::uint64_t records) const {
  if (!has_parity()) return plain_.rows(lfs, records);
  const Bevy& bevy = bevy_of(lfs);
  const std::uint64_t rest = records % width();
  const std::uint64_t in_last_cycle = rest > bevy.first ? std::min<std::uint64_t>(rest - bevy.first, bevy.size) : 0;
  return data_rows_of_column(bevy.size, lfs - bevy.first, records / width() * bevy.size + in_last_cycle);
}

std::uint64_t Layout::rows(LfsIndex lfs, std::uint64_t records) const {
  const std::uint64_t held = data_rows(lfs, records);
  if (held == 0 || !has_parity()) return held;
  const Bevy& bevy = bevy_of(lfs);
  return row_of_data_row(bevy.size, lfs - bevy.first, held - 1) + 1;
}

Range Layout::rows(LfsIndex lfs, Range range) const {
  if (range.empty()) range.end = range.begin;
  if (!has_parity()) return plain_.rows(lfs, range);
  const Bevy& bevy = bevy_of(lfs);
  const std::uint64_t column = lfs - bevy.first;
  const std::uint64_t first = data_rows(lfs, range.begin);
  const std::uint64_t end = data_rows(lfs, range.end);
  const Row begin = row_of_data_row(bevy.size, column, first);
  return {begin, end > first ? row_of_data_row(bevy.size, column, end - 1) + 1 : begin};
}

Row Layout::next_data_row(LfsIndex lfs, Row row) const { return is_parity({lfs, row}) ? row + 1 : row; }

}  // namespace pif::parity
