#include "each_record.h"

#include <algorithm>

namespace pif::sort {
namespace {

constexpr std::uint64_t kBatchBytes = 4u << 20;

}  // namespace

Status for_each_record(File& file, Range range, const std::function<Result<bool>(Bytes)>& f) {
  const Format& format = file.format();
  const std::uint64_t at_once = format.is_fixed() ? std::max<std::uint64_t>(1, kBatchBytes / format.record_length) : 0;
  std::vector<std::byte> batch(at_once * format.record_length);
  for (RecordNumber first = range.begin; first < range.end;) {
    RecordBatch records;
    if (format.is_fixed()) {
      PIF_TRY_VALUE(const std::uint64_t got, file.read_at(first, batch, std::min(at_once, range.end - first)));
      records.lengths.assign(got, format.record_length);
    } else {
      PIF_TRY_VALUE(records, file.read_batch_at(first, range.end - first, kBatchBytes));
    }
    Bytes rest = format.is_fixed() ? Bytes(batch) : Bytes(records.data);
    for (const std::uint32_t length : records.lengths) {
      PIF_TRY_VALUE(const bool go_on, f(rest.first(length)));
      if (!go_on) return {};
      rest = rest.subspan(length);
    }
    first += records.lengths.size();
  }
  return {};
}

}  // namespace pif::sort
