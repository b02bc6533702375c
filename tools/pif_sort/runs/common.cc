#include "runs/common.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "pif/tool/message.h"
#include "runs/order.h"
#include "sort.pb.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kSamples = 64;
constexpr std::size_t kSampleBytes = 16u << 10;  // of a longer record not all is looked at
constexpr std::size_t kCommonMax = 64;

// A key that is no longer than what all begin with would have an empty chunk, which says nothing of it.
std::string_view without_last(std::string_view text) { return text.substr(0, text.size() - (text.empty() ? 0 : 1)); }

void cut_to_common(std::optional<std::string>& common, std::string_view text) {
  if (!common) {
    common = text.substr(0, kCommonMax);
  } else {
    common->resize(common_bytes(*common, text, 0));
  }
}

// Nothing: there are no records.
Result<std::optional<std::string>> common_here(const Inputs& inputs, const KeyMaker& maker) {
  std::optional<std::string> common;
  const std::uint64_t rows = inputs.rows(), count = std::min(rows, kSamples);
  std::vector<std::byte> record;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<std::uint64_t, 2> ends{};
    PIF_TRY(inputs.read_ends(i * rows / count, 1, ends));
    record.resize(std::min<std::uint64_t>(ends[1] - ends[0], kSampleBytes));
    PIF_TRY(inputs.read_bytes(ends[0], record));
    cut_to_common(common, without_last(maker.text_of(record)));
  }
  return common;
}

}  // namespace

Status find_common(tool::Team& team, const Inputs& inputs, KeyMaker& maker) {
  if (!maker.is_text() || maker.fixed_length()) return {};
  PIF_TRY_VALUE(const auto own, common_here(inputs, maker));
  message::Common mine;
  mine.set_has_records(own.has_value());
  mine.set_text(own.value_or(std::string()));
  PIF_TRY_VALUE(const auto all, team.all_gather(mine.SerializeAsString()));
  const auto records = inputs.rows_by_rank();
  std::optional<std::string> common;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    PIF_TRY_VALUE(const auto each, tool::parse_message<message::Common>(all[rank], rank));
    if (each.has_records() != (records[rank] > 0) || each.text().size() > kCommonMax)
      return tool::sent_nonsense(
          rank, fmt::format("{} bytes in common in its {} records", each.text().size(), records[rank]));
    if (each.has_records()) cut_to_common(common, each.text());
  }
  maker.set_common(common.value_or(std::string()));
  return {};
}

}  // namespace pif::sort
