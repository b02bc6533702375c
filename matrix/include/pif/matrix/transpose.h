// Transposition in memory. The smallest block is a square of 64 / bits elements: 64-bit words, one of each row, which a
// network of exchanges between words transposes (Hacker's Delight, 7-3), in as many blocks side by side as a vector
// register has words. Blocks make tiles of 64 bytes by as many rows, so that every cache line is read and written once.
//
// Pure; any thread. Little-endian machines.
#pragma once

#include <span>

#include "pif/matrix/element.h"

namespace pif::matrix {

// Rows in memory: row r begins at base + r * pitch.
struct ConstRows {
  const std::byte* base = nullptr;
  std::size_t pitch = 0;
};
struct Rows {
  std::byte* base = nullptr;
  std::size_t pitch = 0;
};

inline constexpr std::size_t kTileRowBytes = 64;
// Rows, and elements of a row, of a tile.
constexpr std::uint32_t tile_elements(Element element) { return kTileRowBytes * 8 / element.bits; }

// Rows that do not lie at one distance: row c begins at begins[c] + offset.
struct RowPlaces {
  std::span<std::byte* const> begins;
  std::size_t offset = 0;
};

// out[c][r] = in[r][c] for all r < rows, c < columns. `out` gets `columns` rows of element.bytes_of(rows) bytes, whose
// padding is zero whatever that of `in` is; RowPlaces: begins has `columns` places. Reads element.bytes_of(columns)
// bytes of each row of `in`, and no others; the two do not overlap. Any alignment.
void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, Rows out, Element element);
void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, RowPlaces out, Element element);

}  // namespace pif::matrix
