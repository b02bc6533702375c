#include "groups.h"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

#include "pif/base/packed.h"
#include "pif/tool/head.h"
#include "pif/tool/scatter.h"

namespace pif::summarize {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30;  // of a worker's keys, and their summaries
constexpr std::uint64_t kGroupBytes = 100;                   // beside its key and its fields

struct KeyHead {
  std::string key;
  std::uint64_t count = 0;
  static auto members(auto& self) { return std::tie(self.key, self.count); }
};

}  // namespace

std::size_t KeyHash::operator()(std::string_view key) const { return XXH3_64bits(key.data(), key.size()); }

Result<Group*> Groups::at(std::string_view key) {
  if (const auto known = groups_.find(key); known != groups_.end()) return &known->second;
  const auto found = groups_.try_emplace(std::string(key)).first;
  found->second.fields.resize(fields_);
  bytes_ += key.size() + kGroupBytes + fields_ * sizeof(Moments);
  if (bytes_ <= kBytesMax) return &found->second;
  return fail(Code::kTooLarge,
              fmt::format("over {} different values are too many for memory here: pif sort, or pif map "
                          "--by, can do it",
                          groups_.size()));
}

void Groups::pack_group(std::string& out, const std::string& key, const Group& group) const {
  out += tool::pack_head(KeyHead{key, group.count});
  for (const Moments& field : group.fields) out += packed(std::span<const std::uint64_t>(field.numbers()));
}

std::vector<std::pair<std::uint64_t, std::string>> Groups::most_frequent(std::size_t count) const {
  std::vector<std::pair<std::uint64_t, std::string>> all;
  for (const auto& [key, group] : groups_) all.emplace_back(group.count, key);
  const auto goes_before = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::partial_sort(all.begin(), end, all.end(), goes_before);
  all.erase(end, all.end());
  return all;
}

std::string Groups::pack() const {
  std::string out;
  for (const auto& [key, group] : groups_) pack_group(out, key, group);
  return out;
}

Status Groups::add_packed(std::string_view text) {
  auto rest = std::as_bytes(std::span(text));
  while (!rest.empty()) {
    KeyHead head;
    const bool is_read = tool::take_member(rest, head.key) && tool::take_member(rest, head.count);
    if (!is_read) return fail(Code::kInvalid, "groups that are cut off");
    PIF_TRY_VALUE(Group* const group, at(head.key));
    group->count += head.count;
    for (Moments& field : group->fields) {
      const auto numbers = PackedNumbers<std::uint64_t>::take(rest, Moments::kNumbers);
      if (!numbers) return fail(Code::kInvalid, "groups that are cut off");
      std::array<std::uint64_t, Moments::kNumbers> all{};
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = (*numbers)[i];
      field.add(Moments::of(all));
    }
  }
  return {};
}

Status Groups::exchange(tool::Worker& worker, tool::Team& team) {
  std::vector<std::string> come(worker.width());  // added by rank, whoever comes first
  std::uint64_t come_bytes = 0;
  tool::Scatter scatter(team, worker.width(), [&](std::uint32_t from, std::span<const std::byte> bytes) -> Status {
    come[from].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    come_bytes += bytes.size();
    return come_bytes <= kBytesMax ? Status() : fail(Code::kTooLarge, "the different values are too many for memory");
  });
  for (const auto& [key, group] : groups_) {
    const auto rank = static_cast<std::uint32_t>(KeyHash()(key) % come.size());
    pack_group(scatter.to(rank), key, group);
    PIF_TRY(scatter.step(rank));
  }
  PIF_TRY(scatter.end());
  groups_.clear();
  bytes_ = 0;
  for (std::uint32_t rank = 0; rank < come.size(); ++rank) {
    if (const Status added = add_packed(come[rank]); !added) return tool::sent_wrong(rank, added.error());
    come[rank] = {};
  }
  return {};
}

}  // namespace pif::summarize
