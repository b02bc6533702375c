// The checksum of stored bytes. A chunk's sum binds its position, so that right bytes in the wrong place fail too,
// and can be bound to another file without reading the data (a clone): sum' = sum ^ mix(old) ^ mix(new). Pure; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pif/base/ids.h"

namespace pif {

// XXH3-64 of the bytes.
std::uint64_t hash_bytes(std::span<const std::byte> bytes);
// What binds a sum to (file, stream, chunk). `stream` tells apart the checked streams of one component: 0 data, 1
// index. chunk: its number in the stream, from 0. chunk_sum: the sum of that chunk's bytes, so bound, as it is stored.
std::uint64_t chunk_mix(FileId file, std::uint32_t stream, std::uint64_t chunk);
inline std::uint64_t chunk_sum(FileId file, std::uint32_t stream, std::uint64_t chunk,
                               std::span<const std::byte> bytes) {
  return hash_bytes(bytes) ^ chunk_mix(file, stream, chunk);
}

}  // namespace pif
