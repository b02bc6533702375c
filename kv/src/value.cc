#include "pif/kv/value.h"

#include <fmt/format.h>

#include <span>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"

namespace pif::kv {
namespace {

std::uint64_t hash_of(std::string_view payload) {
  return hash_bytes(std::as_bytes(std::span<const char>(payload.data(), payload.size())));
}

constexpr std::size_t kSumBytes = 8;

template <typename T>
void append_big_endian(std::string& key, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
  }
}

}  // namespace

void seal_in_place(std::string& value) {
  PIF_ASSERT(value.size() >= kSumBytes, value.size());
  const std::uint64_t sum = hash_of(std::string_view(value).substr(kSumBytes));
  for (std::size_t i = 0; i < kSumBytes; ++i) value[i] = static_cast<char>(static_cast<unsigned char>(sum >> (8 * i)));
}

std::string seal_value(std::string_view payload) {
  std::string value;
  value.reserve(kSumBytes + payload.size());
  value.append(kSumBytes, '\0').append(payload);
  seal_in_place(value);
  return value;
}

Result<std::string_view> open_value(std::string_view value, std::string_view what) {
  if (value.size() < kSumBytes) {
    return fail(Code::kCorrupt,
                fmt::format("{}: the stored value has {} bytes, too few for its checksum", what, value.size()));
  }
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kSumBytes; ++i) sum |= std::uint64_t{static_cast<unsigned char>(value[i])} << (8 * i);
  const std::string_view payload = value.substr(kSumBytes);
  if (sum != hash_of(payload))
    return fail(Code::kCorrupt, fmt::format("{}: the stored value fails its checksum", what));
  return payload;
}

std::string key_u64(std::uint64_t value) {
  std::string key;
  append_big_endian(key, value);
  return key;
}

std::string key_u32(std::uint32_t value) {
  std::string key;
  append_big_endian(key, value);
  return key;
}

std::uint64_t u64_of_key(std::string_view key) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(key[i]);
  return value;
}

}  // namespace pif::kv
