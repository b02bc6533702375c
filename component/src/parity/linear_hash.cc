#include <bit>
#include <cstring>

#include <isa-l/crc64.h>

#include "pif/component/parity.h"

namespace pif::component {

std::uint64_t linear_hash(std::uint64_t crc, std::span<const std::byte> bytes) {
  // ISA-L inverts the register before and after.
  return ~crc64_ecma_refl(~crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::uint64_t row_hash(std::span<const std::byte> row) {
  const auto length = static_cast<std::uint32_t>(row.size());
  std::byte bytes[sizeof length];
  std::memcpy(bytes, &length, sizeof length);
  return linear_hash(linear_hash(0, bytes), row);
}

std::uint64_t stretch_hash(const Format& format, const PackedRows& rows) {
  if (format.is_fixed()) return linear_hash(0, rows.bytes);
  std::uint64_t hash = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.lengths.size(); ++i) {
    hash ^= std::rotl(row_hash(std::span(rows.bytes).subspan(at, rows.lengths[i])), static_cast<int>(i));
    at += rows.lengths[i];
  }
  return hash;
}

}  // namespace pif::component
