#include "store/keeper.h"

#include <algorithm>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {

Keeper Keeper::of(const component::Shape& shape, const parity::Layout& layout, LfsIndex index) {
  PIF_ASSERT(layout.has_parity() && index < layout.width(), index, layout.width());
  Keeper out{layout, index, layout.members(index), {}};
  out.shape.file = shape.file;
  out.shape.format = shape.format;
  out.shape.offsets = out.members.offsets;
  return out;
}

std::uint64_t Keeper::whole_records(const FileLength& file_length) const {
  if (!format().is_fixed() || file_length.records == 0) return file_length.records;
  const bool is_short = file_length.bytes % format().record_length != 0;
  return file_length.records - (is_short ? 1 : 0);
}

std::uint64_t Keeper::pages(const FileLength& file_length) const {
  return layout.full_groups(index, whole_records(file_length)) / shape.page_rows();
}

Range Keeper::parity_rows_of(std::size_t member, Range rows) const {
  PIF_ASSERT(member < size(), member, size());
  const std::uint64_t step = size(), offset = members.offsets[member];
  PIF_ASSERT(offset < step, offset, step);
  const auto first_from = [&](Row row) { return row > offset ? (row - offset - 1) / step + 1 : 0; };
  return {first_from(rows.begin), first_from(std::max(rows.begin, rows.end))};
}

Range Keeper::touched(Range records) const {
  Range out{~std::uint64_t{0}, 0};
  for (std::size_t member = 0; member < size(); ++member) {
    const Range rows = parity_rows_of(member, rows_of(member, records));
    if (rows.empty()) continue;
    out = {std::min(out.begin, rows.begin), std::max(out.end, rows.end)};
  }
  return out.empty() ? Range{} : out;
}

Range Keeper::pages_inside(Range records) const {
  Range inside{0, ~std::uint64_t{0}};
  for (std::size_t member = 0; member < size(); ++member)
    inside = cut(inside, parity_rows_of(member, rows_of(member, records)));
  const std::uint64_t page_rows = shape.page_rows();
  const Range pages{(inside.begin + page_rows - 1) / page_rows, inside.end / page_rows};
  return inside.empty() || pages.empty() ? Range{} : pages;
}

std::uint64_t row_bytes_of(const Format& format, const FileLength& file_length) {
  if (format.is_fixed()) return format.record_length;
  const std::uint64_t average = file_length.bytes / std::max<std::uint64_t>(file_length.records, 1) + 1;
  return std::min<std::uint64_t>(average, kRecordLengthMax);
}

std::uint64_t Keeper::bytes(const FileLength& file_length) const { return file_length.bytes / size() / layout.width(); }

}  // namespace pif::lfs
