// The rows of one CopyRows: rows of an absent LFS, for the frames of the LFS that keeps their parity.
#pragma once

#include <memory>

#include "parity/keeping.h"
#include "parity/kept_frames.h"

namespace pif::lfs {

struct CopiedRows {
  std::size_t member = 0;  // whose they are
  Range parity_rows;       // one row of each
  std::uint64_t generation = 0;
  std::vector<std::uint32_t> lengths;  // of the rows
  std::vector<std::byte> bytes;        // one after another
};
using CopiedRowsPtr = std::shared_ptr<const CopiedRows>;

// kInvalid, kTooLarge: rows that are not the member's here, or a body that does not fit them.
[[nodiscard]] Result<CopiedRowsPtr> take_copied_rows(const Keeper& keeper, const proto::CopyRows& asked,
                                                     std::span<const std::byte> body);
// As add_frames().
[[nodiscard]] Status add_copies(const Keeper& keeper, const CopiedRows& rows, component::ParityFiles& files,
                                std::uint64_t& end, std::vector<component::Frame>& written);

}  // namespace pif::lfs
