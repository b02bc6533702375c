#include "keys/lengths.h"

#include <algorithm>
#include <bit>

namespace pif::sort {

void Lengths::add(std::uint64_t bytes, std::uint64_t count) {
  Class& same = classes_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes)), classes_.size() - 1)];
  same.count += count;
  same.bytes += bytes * count;
  same.longest = std::max(same.longest, bytes);
}

void Lengths::add(const Lengths& others) {
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    classes_[i].count += others.classes_[i].count;
    classes_[i].bytes += others.classes_[i].bytes;
    classes_[i].longest = std::max(classes_[i].longest, others.classes_[i].longest);
  }
}

// The longest first: whole classes as long as they fit, and of the next one as many as fit if all are as long as its
// longest.
std::uint64_t Lengths::fit(std::uint64_t bytes, std::uint64_t overhead) const {
  std::uint64_t count = 0;
  for (auto next = classes_.rbegin(); next != classes_.rend(); ++next) {
    if (next->count == 0) continue;
    const std::uint64_t all = next->bytes + next->count * overhead;
    if (all > bytes) return count + std::min(next->count, bytes / std::max<std::uint64_t>(next->longest + overhead, 1));
    bytes -= all;
    count += next->count;
  }
  return UINT64_MAX;
}

std::uint64_t Lengths::longest() const {
  std::uint64_t longest = 0;
  for (const Class& each : classes_) longest = std::max(longest, each.longest);
  return longest;
}

void Lengths::pack(message::RunSizes& out) const {
  for (const Class& each : classes_) {
    message::RunSizes::LengthClass& one = *out.add_lengths();
    one.set_count(each.count);
    one.set_bytes(each.bytes);
    one.set_longest(each.longest);
  }
}

std::optional<Lengths> Lengths::unpack(const message::RunSizes& from) {
  Lengths lengths;
  if (static_cast<std::size_t>(from.lengths_size()) != lengths.classes_.size()) return std::nullopt;
  for (std::size_t i = 0; i < lengths.classes_.size(); ++i) {
    const auto& one = from.lengths(static_cast<int>(i));
    if (one.count() > 0 && static_cast<std::size_t>(std::bit_width(one.longest())) != i) return std::nullopt;
    lengths.classes_[i] = {one.count(), one.bytes(), one.longest()};
  }
  return lengths;
}

}  // namespace pif::sort
