// The checksum of stored bytes. A chunk's sum binds its position, so that right bytes in the wrong place fail too,
// and can be bound to another file without reading the data (a clone): sum' = sum ^ mix(old) ^ mix(new). Where a sum is
// stored with a stamp it binds that in the same way. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "pif/base/ids.h"

namespace pif {

// XXH3-64 of the bytes.
std::uint64_t hash_bytes(std::span<const std::byte> bytes);
// The same of bytes that come in parts, one behind another. Not thread-safe.
class HashStream {
 public:
  HashStream();   // of nothing yet
  ~HashStream();  // any time
  HashStream(const HashStream&) = delete;
  HashStream& operator=(const HashStream&) = delete;
  void add(std::span<const std::byte> bytes);  // not needed any more when it returns
  // The hash of all that was added since it was made, or since reset().
  std::uint64_t value() const;
  void reset();  // as just made

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// The number that binds a sum to (file, stream, chunk). `stream` tells apart the checked streams of one component: 0
// data, 1 index, 2 to 4 parity. chunk: its number in the stream, from 0. chunk_sum: the sum of that chunk's bytes, so
// bound, as it is stored.
std::uint64_t chunk_mix(FileId file, std::uint32_t stream, std::uint64_t chunk);
inline std::uint64_t chunk_sum(FileId file, std::uint32_t stream, std::uint64_t chunk,
                               std::span<const std::byte> bytes) {
  return hash_bytes(bytes) ^ chunk_mix(file, stream, chunk);
}
// The number that binds a sum to the stamp that is stored with it; of stamp 0 it is not 0.
std::uint64_t stamp_mix(std::uint64_t stamp);
inline std::uint64_t chunk_sum(FileId file, std::uint32_t stream, std::uint64_t chunk, std::span<const std::byte> bytes,
                               std::uint64_t stamp) {
  return chunk_sum(file, stream, chunk, bytes) ^ stamp_mix(stamp);
}

}  // namespace pif
