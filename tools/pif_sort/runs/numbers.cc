#include "runs/numbers.h"

#include <algorithm>
#include <numeric>

#include "pif/base/assert.h"

namespace pif::sort {

RecordNumbers::RecordNumbers(parity::Layout layout) {
  std::vector<std::uint32_t> sources(layout.width());
  std::iota(sources.begin(), sources.end(), 0U);
  add(std::move(layout), sources, {0, UINT64_MAX});
}

void RecordNumbers::add(parity::Layout layout, const std::vector<std::uint32_t>& sources, Range records) {
  PIF_ASSERT(sources.size() == layout.width(), sources.size(), layout.width());
  goes_round_ = inputs_.empty() && layout.is_even() && records.begin == 0;
  for (LfsIndex lfs = 0; lfs < sources.size(); ++lfs) {
    const std::uint32_t source = sources[lfs];
    goes_round_ = goes_round_ && source == lfs;
    if (source >= parts_.size()) {
      parts_.resize(source + 1);
      rows_.resize(source + 1);
    }
    const Range rows = layout.rows(lfs, records);
    if (rows.empty()) continue;
    parts_[source].push_back({rows_[source], inputs_.size(), lfs, rows.begin});
    rows_[source] += rows.size();
  }
  inputs_.push_back({std::move(layout), records_ - records.begin});
  records_ += records.size();
}

RecordNumber RecordNumbers::number(std::uint32_t source, Row row) const {
  const std::vector<Part>& parts = parts_[source];
  auto part = parts.begin();
  while (part + 1 != parts.end() && (part + 1)->begin <= row) ++part;
  const Input& input = inputs_[part->input];
  return input.first + input.layout.record_at({part->lfs, part->first + (row - part->begin)});
}

}  // namespace pif::sort
