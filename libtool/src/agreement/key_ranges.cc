#include "pif/tool/key_ranges.h"

#include <algorithm>

#include "pif/base/assert.h"
#include "pif/tool/head.h"
#include "pif/tool/message.h"

namespace pif::tool {
namespace {

constexpr std::uint64_t kSamples = 256;  // for each worker
constexpr std::size_t kKeyBytes = 1024;

struct Keys {
  std::vector<std::string> keys;
  static auto members(auto& self) { return std::tie(self.keys); }
};

std::string_view cut(std::string_view key) { return key.substr(0, kKeyBytes); }

// Of rows that are equally far apart, on all workers.
Result<Keys> keys_here(const Worker& worker, const Input& input, const KeyRanges::KeyOf& key_of) {
  Keys found;
  const std::uint64_t records = input.file_length().records;
  const std::uint64_t every = std::max<std::uint64_t>(records / (kSamples * worker.width()), 1);
  RowBatch batch;
  for (Row row = 0; input.is_here() && row < input.rows(); row += every) {
    PIF_TRY(input.read(row, 1, 0, batch));
    batch.for_each([&](std::span<const std::byte> record) { found.keys.emplace_back(cut(key_of(record))); });
  }
  return found;
}

}  // namespace

Result<KeyRanges> KeyRanges::sample(Worker& worker, Team& team, const Input& input, const KeyOf& key_of) {
  PIF_TRY_VALUE(const Keys here, keys_here(worker, input, key_of));
  PIF_TRY_VALUE(const auto all, team.all_gather(pack_head(here)));
  std::vector<std::string> keys;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    auto read = unpack_head<Keys>(all[rank]);
    if (!read) return sent_nonsense(rank, "keys that cannot be read");
    std::move(read->keys.begin(), read->keys.end(), std::back_inserter(keys));
  }
  std::sort(keys.begin(), keys.end());
  KeyRanges ranges;
  for (std::uint64_t range = 1; range < worker.width() && !keys.empty(); ++range)
    ranges.firsts_.push_back(keys[range * keys.size() / worker.width()]);
  PIF_ASSERT(ranges.firsts_.size() < worker.width(), ranges.firsts_.size(), worker.width());  // owner() is a rank
  PIF_ASSERT(std::is_sorted(ranges.firsts_.begin(), ranges.firsts_.end()), ranges.firsts_.size());
  return ranges;
}

std::uint32_t KeyRanges::owner(std::string_view key) const {
  const auto behind = std::upper_bound(firsts_.begin(), firsts_.end(), cut(key));
  return static_cast<std::uint32_t>(behind - firsts_.begin());
}

}  // namespace pif::tool
