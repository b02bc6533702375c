// Numbers of 32 bits between workers, in as few bytes as the largest of them needs: short records would be half numbers
// otherwise. One byte says how many bytes each has, 0 to 4, then come the numbers, little-endian. 0: all of them are 0.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "pif/base/assert.h"

namespace pif::tool {

// Whether each number takes room, even if all are 0. For numbers that tell how much memory or time a message takes, so
// that there are no more of them than bytes that came.
enum class Room : std::uint8_t { kAsNeeded, kAlways };

// A view: the bytes outlive it. Thread-safety: a value; const calls from several threads are fine.
class NarrowNumbers {
 public:
  NarrowNumbers() = default;
  // The first `count` numbers of `bytes`, which are what follows them then. Nothing if they are not there, or not
  // packed as `room` says.
  static std::optional<NarrowNumbers> take(std::span<const std::byte>& bytes, std::uint64_t count, Room room) {
    if (bytes.empty()) return std::nullopt;
    const auto width = std::to_integer<std::size_t>(bytes[0]);
    const bool has_room = width > 0 || room == Room::kAsNeeded;
    if (!has_room || width > sizeof(std::uint32_t) || (width > 0 && count > (bytes.size() - 1) / width))
      return std::nullopt;
    NarrowNumbers numbers;
    numbers.data_ = bytes.data() + 1;
    numbers.count_ = count;
    numbers.width_ = width;
    bytes = bytes.subspan(1 + count * width);
    return numbers;
  }

  // In numbers, not bytes; i < size().
  std::uint64_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::uint32_t operator[](std::uint64_t i) const {
    PIF_ASSERT(i < count_, i, count_);
    const std::byte* const at = data_ + i * width_;
    std::uint32_t number = 0;
    switch (width_) {  // sizes that the compiler knows
      case 1: std::memcpy(&number, at, 1); break;
      case 2: std::memcpy(&number, at, 2); break;
      case 3: std::memcpy(&number, at, 3); break;
      case 4: std::memcpy(&number, at, 4); break;
      default: break;
    }
    return number;
  }

 private:
  const std::byte* data_ = nullptr;
  std::uint64_t count_ = 0;
  std::size_t width_ = 0;
};

// Bytes of each number, if the largest is this.
inline std::size_t narrow_width(std::uint32_t largest, Room room) {
  return std::max<std::size_t>((std::bit_width(largest) + 7U) / 8, room == Room::kAlways ? 1 : 0);
}

// Packs `count` numbers, f(0) and up, of narrow_width() `width`, into memory that has 1 + count * width bytes for them;
// returns where that goes on.
template <typename F>
std::byte* pack_narrow(std::uint64_t count, std::size_t width, std::byte* at, const F& f) {
  static_assert(std::endian::native == std::endian::little, "numbers travel as memory has them");
  *at++ = static_cast<std::byte>(width);
  if (width == 0) return at;
  for (std::uint64_t i = 0; i < count; ++i, at += width) {
    const std::uint32_t number = f(i);
    PIF_ASSERT(width >= narrow_width(number, Room::kAsNeeded), width, number);
    std::memcpy(at, &number, width);
  }
  return at;
}

// Rows of a message, as NarrowNumbers: of each how far it is from the first, less how many are before it. So rows one
// after another take no room.
using RowGaps = NarrowNumbers;

}  // namespace pif::tool
