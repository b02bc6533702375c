// How a bulk transfer is cut into blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "file_state.h"
#include "pif/component/component.h"

namespace pif::client {

inline constexpr std::uint64_t kBlockBytesPerLfs = 256u << 10;
inline constexpr std::uint64_t kBlockBytesMin = 1u << 20;
inline constexpr std::uint64_t kBlockBytesMax = 4u << 20;

// Records of one block of fixed records: about 256 KiB for each LFS, and (without bevies) whole chunks at every LFS, so
// that several threads may write blocks of one file.
inline std::uint64_t records_per_block(const FileState& file) {
  const std::uint64_t length = file.parts.format.record_length;
  const std::uint64_t chunk_rows = component::chunk_bytes_for(file.parts.format) / length;
  const std::uint64_t aim = std::clamp(file.width() * kBlockBytesPerLfs, kBlockBytesMin, kBlockBytesMax) / length;
  const std::uint64_t unit = chunk_rows == 1 && aim < file.width() ? 1 : file.width() * chunk_rows;
  return std::max(unit, aim / unit * unit);
}

}  // namespace pif::client
