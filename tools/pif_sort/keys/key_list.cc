#include "keys/key_list.h"

#include <cstring>

#include "pif/base/packed.h"

namespace pif::sort {

void KeyList::add(std::string_view key) {
  bytes_ += key;
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

void KeyList::add(std::string_view key, std::uint64_t number) {
  const std::uint64_t big_endian = __builtin_bswap64(number);
  bytes_ += key;
  add(std::string_view(reinterpret_cast<const char*>(&big_endian), sizeof big_endian));
}

bool KeyList::are_at_least(std::size_t bytes) const {
  for (std::size_t i = 0; i < size(); ++i)
    if ((*this)[i].size() < bytes) return false;
  return true;
}

void KeyList::clear() {
  bytes_.clear();
  ends_.assign(1, 0);
}

// Their number, then where each ends, then their bytes.
net::Buffer KeyList::pack(std::size_t from) const {
  PIF_ASSERT(from <= size(), from, size());
  const auto count = static_cast<std::uint32_t>(size() - from);
  const std::size_t bytes = bytes_.size() - ends_[from];
  net::Buffer body((count + 1) * sizeof(std::uint32_t) + bytes);
  std::byte* at = pack_number(count, body.data());
  for (std::size_t i = from; i < size(); ++i) at = pack_number(ends_[i + 1] - ends_[from], at);
  pack_numbers(std::span<const char>(bytes_).subspan(ends_[from]), at);
  return body;
}

std::uint64_t KeyList::fit(const Lengths& lengths, std::size_t body_bytes) {
  return lengths.fit(body_bytes - sizeof(std::uint32_t), sizeof(std::uint32_t));
}

std::optional<KeyList> KeyList::unpack(std::span<const std::byte> body) {
  const auto count = PackedNumbers<std::uint32_t>::take(body, 1);
  if (!count) return std::nullopt;
  const auto ends = PackedNumbers<std::uint32_t>::take(body, (*count)[0]);
  if (!ends) return std::nullopt;
  KeyList keys;
  keys.ends_.reserve(ends->size() + 1);
  for (std::size_t i = 0; i < ends->size(); ++i) {
    if ((*ends)[i] < keys.ends_.back()) return std::nullopt;
    keys.ends_.push_back((*ends)[i]);
  }
  if (keys.ends_.back() != body.size()) return std::nullopt;
  keys.bytes_.assign(reinterpret_cast<const char*>(body.data()), body.size());
  return keys;
}

}  // namespace pif::sort
