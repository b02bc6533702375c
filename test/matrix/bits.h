// Matrices as rows of bytes, element by element: what everything faster is held against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "pif/matrix/element.h"

namespace pif::matrix {

using Bytes = std::vector<std::byte>;

// Bit `bit` of a row, in the order in which elements have them.
inline bool bit_at(const std::byte* row, std::uint64_t bit, BitOrder order) {
  const std::uint64_t in_byte = order == BitOrder::kMsb ? 7 - bit % 8 : bit % 8;
  return (std::to_integer<unsigned>(row[bit / 8]) >> in_byte & 1) != 0;
}
inline void set_bit(std::byte* row, std::uint64_t bit, BitOrder order) {
  const std::uint64_t in_byte = order == BitOrder::kMsb ? 7 - bit % 8 : bit % 8;
  row[bit / 8] |= std::byte{1} << in_byte;
}

inline void copy_element(const std::byte* from, std::uint64_t i, std::byte* to, std::uint64_t j, Element element) {
  for (std::uint64_t bit = 0; bit < element.bits; ++bit)
    if (bit_at(from, i * element.bits + bit, element.order)) set_bit(to, j * element.bits + bit, element.order);
}

// Packed rows.
inline Bytes transposed(const Bytes& in, std::uint64_t rows, std::uint64_t columns, Element element) {
  const std::uint64_t in_pitch = element.bytes_of(columns), out_pitch = element.bytes_of(rows);
  Bytes out(columns * out_pitch);
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < columns; ++c)
      copy_element(in.data() + r * in_pitch, c, out.data() + c * out_pitch, r, element);
  return out;
}

// The bits behind the last element of each row are zero.
inline Bytes without_padding(Bytes packed, std::uint64_t rows, std::uint64_t columns, Element element) {
  const std::uint64_t pitch = element.bytes_of(columns), used = columns * element.bits;
  const std::uint64_t padding = pitch * 8 - used;
  const auto mask = element.order == BitOrder::kMsb ? std::byte(0xFF << padding & 0xFF) : std::byte(0xFF >> padding);
  for (std::uint64_t r = 0; r < rows && pitch > 0; ++r) packed[(r + 1) * pitch - 1] &= mask;
  return packed;
}

inline Bytes random_bytes(std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace pif::matrix
