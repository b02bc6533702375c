// The bodies of ReadPieces and WritePieces: runs of pieces (pif/pattern/runs.h), and what they read or write. Nothing
// here knows the loop, so any thread may read.
#pragma once

#include <cstdint>
#include <span>

#include "pif/base/result.h"
#include "pif/component/extents.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

struct RunLimits {
  std::uint64_t end = 0;    // no piece goes past it
  std::uint64_t bytes = 0;  // of all pieces: at most, or just so many
  bool is_exact = false;
  std::uint64_t pieces = UINT64_MAX;  // at most
};
// kInvalid: bytes that are no runs, or runs that the limits do not allow.
[[nodiscard]] Status check_runs(std::span<const std::byte> runs, const RunLimits& limits);

// `data` to its places. runs: checked, of just so many bytes. alone: as component::write_extents().
[[nodiscard]] Status write_runs(component::File& file, std::span<const std::byte> runs, std::span<const std::byte> data,
                                bool alone);
// The reply: as many of the pieces' bytes as it may have, and as may be read for one request. scanned: is set to how
// many bytes were read. kInvalid; else those of the reader.
[[nodiscard]] Result<net::Packet> read_published(std::span<const std::byte> runs, const component::Reader& reader,
                                                 std::size_t bytes_max, std::uint64_t& scanned);
// The same of a component that is being created; null: of one that nobody has written to.
[[nodiscard]] Result<net::Packet> read_unsealed(std::span<const std::byte> runs, component::File* file,
                                                std::size_t bytes_max);

}  // namespace pif::lfs
