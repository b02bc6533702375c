// The elements of a matrix whose rows lie packed in memory or in records: element c of a row is at bits
// [c * bits, (c + 1) * bits) of it. Elements of whole bytes keep their bytes as they are. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pif::matrix {

// Which bit of a byte comes first: the most significant one (PBM, numpy.packbits) or the least (PLINK). Makes no
// difference from 8 bits per element on.
enum class BitOrder : std::uint8_t { kMsb, kLsb };

struct Element {
  std::uint32_t bits = 1;  // 1, 2, 4, 8, 16, 32 or 64
  BitOrder order = BitOrder::kMsb;

  // Whether elements may have so many bits. All below is for such elements only.
  static constexpr bool is_width(std::uint64_t bits) { return bits >= 1 && bits <= 64 && (bits & (bits - 1)) == 0; }
  constexpr bool operator==(const Element&) const = default;

  // Bytes of a row: the bits behind its last element are padding.
  constexpr std::uint64_t bytes_of(std::uint64_t elements) const { return (elements * bits + 7) / 8; }
  // Elements that begin and end with a byte: their number is a multiple of this.
  constexpr std::uint32_t per_byte() const { return bits < 8 ? 8 / bits : 1; }
  // Elements of a 64-bit word.
  constexpr std::uint32_t per_word() const { return 64 / bits; }
};

}  // namespace pif::matrix
