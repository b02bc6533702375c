#include "token/token_messages.h"

#include <cstring>

namespace pif::sort {

std::string Head::pack() const {
  std::string text(1, static_cast<char>(say));
  text.append(reinterpret_cast<const char*>(&node), sizeof node);
  return text.append(reinterpret_cast<const char*>(values.data()), sizeof values);
}

std::optional<Head> Head::unpack(std::string_view text) {
  Head head;
  if (text.size() != 1 + sizeof head.node + sizeof head.values) return std::nullopt;
  head.say = static_cast<MessageKind>(text[0]);
  std::memcpy(&head.node, text.data() + 1, sizeof head.node);
  std::memcpy(head.values.data(), text.data() + 1 + sizeof head.node, sizeof head.values);
  return head;
}

void KeyList::add(std::string_view key) {
  bytes_ += key;
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

void KeyList::add(std::string_view key, std::uint64_t number) {
  const std::uint64_t big_endian = __builtin_bswap64(number);
  bytes_ += key;
  add(std::string_view(reinterpret_cast<const char*>(&big_endian), sizeof big_endian));
}

void KeyList::clear() {
  bytes_.clear();
  ends_.assign(1, 0);
}

// Their number, then where each ends, then their bytes.
net::Buffer KeyList::pack(std::size_t from) const {
  const auto count = static_cast<std::uint32_t>(size() - from);
  const std::size_t bytes = bytes_.size() - ends_[from];
  net::Buffer body((count + 1) * sizeof(std::uint32_t) + bytes);
  std::byte* at = body.data();
  std::memcpy(at, &count, sizeof count);
  for (std::size_t i = from; i < size(); ++i) {
    const std::uint32_t end = ends_[i + 1] - ends_[from];
    std::memcpy(at += sizeof end, &end, sizeof end);
  }
  if (bytes > 0) std::memcpy(at + sizeof count, bytes_.data() + ends_[from], bytes);
  return body;
}

std::uint64_t KeyList::fit(const Lengths& lengths, std::size_t body_bytes) {
  return lengths.fit(body_bytes - sizeof(std::uint32_t), sizeof(std::uint32_t));
}

std::optional<KeyList> KeyList::unpack(std::span<const std::byte> body) {
  std::uint32_t count = 0;
  if (body.size() < sizeof count) return std::nullopt;
  std::memcpy(&count, body.data(), sizeof count);
  if (count > body.size() / sizeof count - 1) return std::nullopt;
  KeyList keys;
  keys.ends_.resize(count + 1);
  std::memcpy(keys.ends_.data() + 1, body.data() + sizeof count, count * sizeof count);
  const auto bytes = body.subspan((count + 1) * sizeof count);
  for (std::size_t i = 0; i < count; ++i) {
    if (keys.ends_[i + 1] < keys.ends_[i]) return std::nullopt;
  }
  if (keys.ends_.back() != bytes.size()) return std::nullopt;
  keys.bytes_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return keys;
}

}  // namespace pif::sort
