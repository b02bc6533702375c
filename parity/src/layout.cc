#include "pif/parity/layout.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::parity {
namespace {

constexpr std::uint64_t kPeriodMax = std::uint64_t{1} << 40;  // records; see period.h

// Arithmetic inside one bevy of size B: cell rows r, columns c, and data records m numbered through the bevy in the
// order in which they are written, B - 1 to a cell row. Row q of column c is its q-th data cell; c's parity cells are
// in cell rows c, c + B, c + 2B, ...

// The row of the cell row `r` of column `c`, or of the next one if that is a parity cell.
Row dense_row(std::uint64_t size, std::uint64_t column, Row cell_row) {
  return cell_row - (cell_row + size - 1 - column) / size;
}

// Where in its block of B - 1 rows column `c` has its member of the companion's column `y` != c.
std::uint32_t member_offset(std::uint32_t size, std::uint32_t c, std::uint32_t y) {
  const std::uint32_t in_block = (c + size - y) % (size + 1);  // the cell row
  return in_block - (in_block > c ? 1 : 0);
}

// Of parity rows j with one member each, rows j * members + offset: so many first ones have theirs in the first `rows`.
std::uint64_t covered(std::uint64_t rows, std::uint64_t members, std::uint64_t offset) {
  return rows > offset ? (rows - offset - 1) / members + 1 : 0;
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
  return {bevy.first + static_cast<LfsIndex>(column), dense_row(bevy.size, column, row)};
}

RecordNumber Layout::record_at(Cell cell) const {
  if (!has_parity()) return plain_.record_at(cell);
  const Bevy& bevy = bevy_of(cell.lfs);
  const std::uint64_t column = cell.lfs - bevy.first;
  const Row row = cell_row(cell);
  const std::uint64_t m = row * (bevy.size - 1) + (column < row % bevy.size ? column : column - 1);
  return plain_.record_at({bevy.first + static_cast<LfsIndex>(m % bevy.size), m / bevy.size});
}

std::uint64_t Layout::rows(LfsIndex lfs, std::uint64_t records) const {
  if (!has_parity()) return plain_.rows(lfs, records);
  const Bevy& bevy = bevy_of(lfs);
  const std::uint64_t rest = records % width();
  const std::uint64_t in_last_cycle = rest > bevy.first ? std::min<std::uint64_t>(rest - bevy.first, bevy.size) : 0;
  const std::uint64_t m = records / width() * bevy.size + in_last_cycle;
  const Row full = m / (bevy.size - 1);  // cell rows; then those of one more that come before record m
  const std::uint64_t in_last = m % (bevy.size - 1);
  const std::uint64_t column = lfs - bevy.first;
  const std::uint64_t diagonal = full % bevy.size;
  const bool in_last_row = column != diagonal && column - (column > diagonal ? 1 : 0) < in_last;
  return dense_row(bevy.size, column, full) + (in_last_row ? 1 : 0);
}

// Dibble 1990, 4.1.1, eq. (4.2) to (4.4), the last as simplified in layout.h.
Cell Layout::parity_of(Cell data) const {
  PIF_ASSERT(has_parity(), data.lfs, data.row);
  const Bevy& bevy = bevy_of(data.lfs);
  const std::uint64_t column = data.lfs - bevy.first;
  const std::uint64_t i = (column + bevy.size + 1 - cell_row(data) % bevy.size) % (bevy.size + 1);
  PIF_ASSERT(i > 0, data.lfs, data.row);
  return {bevies_[bevy.companion].first + static_cast<LfsIndex>(i - 1), data.row / (bevy.size - 1)};
}

// Dibble 1990, 4.1.1, eq. (4.5) to (4.7), solved for the column: t runs up to B - 2, for the printed bound gives one
// cell too many.
Layout::ParityMembers Layout::members(LfsIndex keeper) const {
  PIF_ASSERT(has_parity(), keeper);
  const Bevy& bevy = bevy_of(keeper);
  const LfsIndex companion_first = bevies_[bevy.companion].first;
  const std::uint32_t y = keeper - bevy.first;
  ParityMembers members;
  for (std::uint32_t column = 0; column < bevy.size; ++column) {
    if (column == y) continue;
    members.lfs.push_back(companion_first + column);
    members.offsets.push_back(member_offset(bevy.size, column, y));
  }
  return members;
}

std::vector<Cell> Layout::members_of(Cell parity) const {
  const ParityMembers of = members(parity.lfs);
  std::vector<Cell> cells;
  cells.reserve(of.lfs.size());
  for (std::size_t i = 0; i < of.lfs.size(); ++i)
    cells.push_back({of.lfs[i], parity.row * of.lfs.size() + of.offsets[i]});
  return cells;
}

// The parity of a block of B - 1 rows is one row of each of B - 1 LFSs, and the next block's is like it.
std::vector<LfsIndex> Layout::keepers(LfsIndex lfs) const {
  PIF_ASSERT(has_parity(), lfs);
  std::vector<LfsIndex> keepers;
  for (Row row = 0; row + 1 < bevy_of(lfs).size; ++row) keepers.push_back(parity_of({lfs, row}).lfs);
  return keepers;
}

std::uint64_t Layout::full_groups(LfsIndex keeper, std::uint64_t whole_records) const {
  const ParityMembers of = members(keeper);
  std::uint64_t groups = ~std::uint64_t{0};
  for (std::size_t i = 0; i < of.lfs.size(); ++i)
    groups = std::min(groups, covered(rows(of.lfs[i], whole_records), of.lfs.size(), of.offsets[i]));
  return groups;
}

std::uint64_t Layout::parity_rows(LfsIndex keeper, std::uint64_t records) const {
  const ParityMembers of = members(keeper);
  std::uint64_t groups = 0;
  for (std::size_t i = 0; i < of.lfs.size(); ++i)
    groups = std::max(groups, covered(rows(of.lfs[i], records), of.lfs.size(), of.offsets[i]));
  return groups;
}

Row Layout::cell_row(Cell data) const {
  if (!has_parity()) return data.row;
  const Bevy& bevy = bevy_of(data.lfs);
  const std::uint64_t in_block = data.row % (bevy.size - 1);
  return data.row / (bevy.size - 1) * bevy.size + in_block + (in_block >= data.lfs - bevy.first ? 1 : 0);
}

Row Layout::parity_cell_row(LfsIndex keeper, Row parity_row) const {
  PIF_ASSERT(has_parity(), keeper);
  const Bevy& bevy = bevy_of(keeper);
  return parity_row * bevy.size + (keeper - bevy.first);
}

}  // namespace pif::parity
