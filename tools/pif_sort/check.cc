#include "check.h"

#include <algorithm>

#include <fmt/format.h>

#include "each_record.h"

namespace pif::sort {
namespace {

constexpr std::size_t kShownBytes = 200;  // of a record, in a message

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
