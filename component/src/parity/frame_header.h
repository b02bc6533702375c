// How a frame of .pap begins, for those who write, find and read frames. docs/FORMAT.md "Parity".
#pragma once

#include <cstddef>
#include <cstdint>

#include "pif/base/checksum.h"
#include "pif/component/parity.h"

namespace pif::component {

struct FrameHeader {
  std::uint64_t magic = kFrameMagic;
  std::uint64_t record = 0;
  std::uint64_t bytes = 0;  // of the row
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  std::uint64_t hash = 0;  // of all before it, and of the row

  bool is_possible() const { return magic == kFrameMagic && bytes <= kRecordLengthMax; }
  // The hash's seed.
  std::span<const std::byte> hashed() const {
    return std::as_bytes(std::span(this, 1)).first(offsetof(FrameHeader, hash));
  }
  // stream: has taken in hashed() and the row.
  std::uint64_t hash_of(FileId file, const HashStream& stream) const {
    return stream.value() ^ chunk_mix(file, kFrameStream, record);
  }
};
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

inline constexpr std::uint64_t kFrameUnit = 8;  // frames begin at multiples of it
inline std::uint64_t to_unit(std::uint64_t offset) { return (offset + kFrameUnit - 1) / kFrameUnit * kFrameUnit; }

}  // namespace pif::component
