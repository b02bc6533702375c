#include "check.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace pif::sort {
namespace {

constexpr std::uint64_t kBatchBytes = 4u << 20;
constexpr std::size_t kShownBytes = 200;  // of a record, in a message

// f(record) for every record of the range, in order, until it says no.
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

std::string shown(Bytes record) {
  std::string text;
  for (const std::byte b : record.first(std::min(record.size(), kShownBytes))) {
    const auto c = static_cast<char>(b);
    text += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned>(b));
  }
  return record.size() > kShownBytes ? text + "..." : text;
}

}  // namespace

Result<OrderCheck> check_order(File& file, const std::string& path, const KeyMaker& maker, bool unique, Range range) {
  std::string last, key;
  OrderCheck out;
  const auto check = [&](Bytes record) -> Result<bool> {
    PIF_TRY(maker.make_key(record, key));
    const int order = out.records == 0 ? -1 : last.compare(key);
    out.records += 1;
    out.bytes += record.size();
    out.sorted = order < 0 || (order == 0 && !unique);
    if (!out.sorted)
      out.disorder = fmt::format("{}: record {} is out of order: {}", path, range.begin + out.records - 1,
                                 shown(without_terminator(record, file.format())));
    std::swap(last, key);
    return out.sorted;
  };
  PIF_TRY(for_each_record(file, range, check));
  return out;
}

}  // namespace pif::sort
