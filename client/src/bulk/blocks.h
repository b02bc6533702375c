// How a bulk transfer is cut into blocks, and done by several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "file/file_state.h"
#include "pif/component/component.h"
#include "session/pool.h"

namespace pif::client {

// Through descriptors small blocks stay in the processor's caches; by message large ones cost fewer messages. Blocks
// that are put in order have several under way, and variable records are twice in memory.
struct BlockAim {
  std::uint64_t bytes_per_lfs;
  std::uint64_t bytes_min;
  std::uint64_t bytes_max;
};
inline constexpr BlockAim kDirectBlock{256u << 10, 1u << 20, 4u << 20};
inline constexpr BlockAim kOrderedBlock{64u << 10, 512u << 10, 2u << 20};
inline constexpr BlockAim kMessageBlock{1u << 20, 1u << 20, 8u << 20};

// Records of one block of fixed records, and (without bevies) whole chunks at every LFS, so that several threads may
// write blocks of one file.
inline std::uint64_t records_per_block(const FileState& file, const BlockAim& aim) {
  const std::uint64_t length = file.parts.format.record_length;
  const std::uint64_t chunk_rows = component::chunk_bytes_for(file.parts.format) / length;
  const std::uint64_t records = std::clamp(file.width() * aim.bytes_per_lfs, aim.bytes_min, aim.bytes_max) / length;
  const std::uint64_t unit = chunk_rows == 1 && records < file.width() ? 1 : file.width() * chunk_rows;
  return std::max(unit, records / unit * unit);
}

// Does blocks [0, count) on all threads of the pool. make_worker() gives what does one block after another on one
// thread. report() runs on the caller's thread, after each block that it has done. The first error stops all of them,
// and is the outcome.
using BlockWorker = std::function<Status(std::uint64_t block)>;
[[nodiscard]] Status do_blocks(Pool& pool, std::uint64_t count, const std::function<BlockWorker()>& make_worker,
                               const std::function<Status()>& report);

}  // namespace pif::client
