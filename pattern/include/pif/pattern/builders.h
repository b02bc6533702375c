// The patterns that interfaces know, each as its paper defines it. They describe one side of a request: what has a file
// stride and a memory stride there is built once for each. "Galley" is Nieuwejaar and Kotz, "The Galley parallel file
// system", Parallel Computing 1997.
// Mistakes in a pattern are found when it is compiled (pattern.h); only those that cannot even be written down fail
// here. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/pattern/pattern.h"

namespace pif::patterns {

// One range of bytes.
Pattern range(std::int64_t offset, std::uint64_t bytes);

// Galley 5.1, gfs_read_strided(): `quantity` records; each begins `stride` bytes behind the one before, or before it if
// that is negative.
Pattern simple_strided(std::int64_t offset, std::uint64_t record_size, std::int64_t stride, std::uint64_t quantity);

// One level of nesting: `quantity` repetitions, each `stride` bytes behind the one before.
struct Stride {
  std::int64_t stride = 0;
  std::uint64_t quantity = 1;
};
// Galley 5.2, gfs_read_nested(): the innermost stride first. Without strides, one record. kTooLarge: over kDepthMax.
[[nodiscard]] Result<Pattern> nested_strided(std::int64_t offset, std::uint64_t record_size,
                                             std::span<const Stride> innermost_first);

// The origin of a batch's offsets.
enum class Origin {
  kAbsolute,     // offset 0 of the request
  kPrevious,     // where the batch before it in its vector begins; for the first, where the enclosing batch is
  kPreviousEnd,  // behind the last byte of the batch before it, as they are walked; for the first, as kPrevious
};
// Galley 5.3, struct gfs_batch: `quantity` times a piece of `size` bytes, or a vector of batches. The paper has
// absolute and relative offsets; the latter are kPrevious. An absolute offset in a batch that is repeated is that of
// the first repetition; the stride moves the others.
struct Batch {
  std::int64_t offset = 0;
  Origin origin = Origin::kAbsolute;
  std::uint64_t quantity = 1;
  std::int64_t stride = 0;
  std::uint64_t size = 0;  // if `inner` is empty
  std::vector<Batch> inner;
};
// Galley 5.3, gfs_read_batched(). kTooLarge: an offset that 64 bits do not hold, or over kDepthMax batches inside one
// another. kInvalid: a batch without repetitions.
[[nodiscard]] Result<Pattern> nested_batched(std::span<const Batch> batches);

// Galley 5.4, the list interface; lio_listio() of POSIX. In the list's order.
Pattern list(std::span<const Piece> pieces);

// PVFS 2000, section 3.3: groups of `group_size` bytes, whose beginnings are `stride` apart; it has no end.
Pattern partition(std::int64_t offset, std::uint64_t group_size, std::int64_t stride);

// MPI 4.1, section 14.3, MPI_File_set_view(): `filetype` from `displacement` on, tiled over its own extent. Offsets in
// the view are what a walk skips.
Pattern view(std::int64_t displacement, Pattern filetype);

// Dibble 1990, 2.4.2, parallel-open: what process `member` of `members` gets, if the job begins at record `position`:
// every members-th record from position + member on; it has no end. kInvalid: member is not below members. kTooLarge:
// an offset that 64 bits do not hold.
[[nodiscard]] Result<Pattern> member_of(std::uint64_t member, std::uint64_t members, std::uint64_t record_size,
                                        std::uint64_t position = 0);

}  // namespace pif::patterns
