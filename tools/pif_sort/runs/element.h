// The number that orders a record: the first bytes of its sort key, and its row, in one number of 128 bits.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <hwy/base.h>

#include "keys/encode.h"

namespace pif::sort {

// A key's bytes come in chunks of kChunkBytes, the last one with zeros behind it. From the most significant byte on:
// one chunk, its number (the level), and the row. So comparing elements of one level as numbers sorts by chunk, and
// equal ones by row.
//
// In a run, an element of a key that is text (KeyMaker::is_text) has the first chunk in which its key differs from the
// key of the element before it: the offset-value coding of merges (Conner 1977). kSameKey: there is none. Elsewhere it
// has the first chunk of all, level 0.
using Element = hwy::uint128_t;
inline constexpr std::size_t kChunkBytes = kWholeBytes;  // a value that has no more is whole in it
inline constexpr unsigned kLevelMax = 254;               // chunks beyond it are compared in the records
inline constexpr unsigned kSameKey = 255;

// Up to 8 bytes as a big-endian number, zeros behind them. Words that are read at once were written at once, or the
// processor waits for all that it is writing.
inline std::uint64_t big_endian_of(const char* bytes, std::size_t size) {
  if (size >= 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return __builtin_bswap64(value);
  }
  if (size >= 4) {  // two halves that overlap
    std::uint32_t first = 0, last = 0;
    std::memcpy(&first, bytes, sizeof first);
    std::memcpy(&last, bytes + size - sizeof last, sizeof last);
    return std::uint64_t{__builtin_bswap32(first)} << 32 |
           (std::uint64_t{__builtin_bswap32(last)} << 32) >> (8 * (size - sizeof last));
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (56 - 8 * i);
  return value;
}

// chunk: its first kChunkBytes count.
inline Element element_of(std::string_view chunk, std::uint32_t row, unsigned level = 0) {
  Element element;
  element.hi = big_endian_of(chunk.data(), chunk.size());
  const std::uint64_t rest =
      chunk.size() > 8 ? big_endian_of(chunk.data() + 8, std::min<std::size_t>(chunk.size() - 8, kChunkBytes - 8)) : 0;
  element.lo = rest | std::uint64_t{level} << 32 | row;
  return element;
}
inline std::uint32_t row_of(const Element& element) { return static_cast<std::uint32_t>(element.lo); }
inline unsigned level_of(const Element& element) { return static_cast<unsigned>(element.lo >> 32) & 0xff; }
inline Element with_level(Element element, unsigned level) {
  element.lo = (element.lo & ~(std::uint64_t{0xff} << 32)) | std::uint64_t{level} << 32;
  return element;
}
inline Element with_row(Element element, std::uint32_t row) {
  element.lo = (element.lo & ~std::uint64_t{UINT32_MAX}) | row;
  return element;
}
// All bits of its chunk the other way: a reversed key's.
inline Element complement(Element element) {
  element.hi = ~element.hi;
  element.lo ^= ~std::uint64_t{0} << 40;
  return element;
}
// With a chunk of zeros, or of all bits.
inline Element lowest_element(std::uint32_t row) {
  Element element{};
  return with_row(element, row);
}
inline Element highest_element(std::uint32_t row) { return complement(lowest_element(row)); }
inline bool is_same_chunk(const Element& a, const Element& b) { return a.hi == b.hi && a.lo >> 40 == b.lo >> 40; }
inline unsigned last_byte(const Element& element) { return static_cast<unsigned>(element.lo >> 40) & 0xff; }
inline std::array<char, kChunkBytes> chunk_of(const Element& element) {
  const std::uint64_t first = __builtin_bswap64(element.hi), rest = __builtin_bswap64(element.lo);
  std::array<char, kChunkBytes> chunk;
  std::memcpy(chunk.data(), &first, sizeof first);
  std::memcpy(chunk.data() + sizeof first, &rest, kChunkBytes - sizeof first);
  return chunk;
}

// How a key compares with others, where all are known to come behind one and the same key: the one that is like it for
// longer comes first, and of two that are like it for as long the one with the lower chunk behind that. Equal codes do
// not decide.
struct OffsetCode {
  std::uint64_t high = UINT64_MAX, low = UINT64_MAX;  // as such, behind all keys
  auto operator<=>(const OffsetCode&) const = default;
  unsigned level() const { return 255 - static_cast<unsigned>(high >> 56); }
};
inline OffsetCode code_of(const Element& element) {
  const std::uint64_t level = 255 - level_of(element);  // of kSameKey: kSameCode
  return {level << 56 | element.hi >> 8, (element.hi & 0xff) << 24 | element.lo >> 40};
}
// The code of a key that is the same as the one before.
inline constexpr OffsetCode kSameCode{0, 0};
// The codes of first chunks that are zeros, and of those that have all bits.
inline constexpr OffsetCode kLowestCode{std::uint64_t{255} << 56, 0}, kHighestCode{UINT64_MAX, UINT32_MAX};

}  // namespace pif::sort
