// Arrays of numbers between processes: one behind another, little-endian, not aligned. Numbers of another process are
// read here only, where their length is checked before anything is read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "pif/base/assert.h"

namespace pif {

static_assert(std::endian::native == std::endian::little, "numbers travel as memory has them");

template <typename T>
concept PackedNumber = (std::is_integral_v<T> && !std::is_same_v<T, bool>) || std::is_floating_point_v<T>;

// A view: the bytes outlive it. Thread-safety: a value; const calls from several threads are fine.
template <PackedNumber T>
class PackedNumbers {
 public:
  // Nothing unless `bytes` are exactly so many numbers.
  static std::optional<PackedNumbers> all_of(std::span<const std::byte> bytes, std::uint64_t count) {
    auto numbers = take(bytes, count);
    return bytes.empty() ? numbers : std::nullopt;
  }
  // The first `count` numbers of `bytes`, which are what follows them then. Nothing if there are fewer.
  static std::optional<PackedNumbers> take(std::span<const std::byte>& bytes, std::uint64_t count) {
    if (count > bytes.size() / sizeof(T)) return std::nullopt;
    PackedNumbers numbers(bytes.first(count * sizeof(T)));
    bytes = bytes.subspan(count * sizeof(T));
    return numbers;
  }

  // In numbers, not bytes; i < size(). Any alignment.
  std::size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  T operator[](std::size_t i) const {
    PIF_ASSERT(i < size(), i, size());
    T number;
    std::memcpy(&number, bytes_.data() + i * sizeof number, sizeof number);
    return number;
  }

 private:
  explicit PackedNumbers(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Packs numbers into memory that has room for them, sizeof(T) bytes each, of any alignment; returns where that goes on.
// packed(): the same in a string of its own, as messages take it.
template <PackedNumber T>
std::byte* pack_numbers(std::span<const T> numbers, std::byte* at) {
  if (!numbers.empty()) std::memcpy(at, numbers.data(), numbers.size_bytes());
  return at + numbers.size_bytes();
}
template <PackedNumber T>
std::byte* pack_number(T number, std::byte* at) {
  return pack_numbers(std::span<const T>(&number, 1), at);
}
template <PackedNumber T>
std::string packed(std::span<const T> numbers) {
  std::string bytes(numbers.size_bytes(), '\0');
  pack_numbers(numbers, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

}  // namespace pif
