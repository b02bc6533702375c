// A component of a committed file without rows, made because its LFS has to keep something else of the file.
#pragma once

#include "context/lfs_context.h"

namespace pif::lfs {

// Its files are durable; it enters the catalogue with its first change. shape: for this LFS (LfsContext::check_shape).
// kNoSpace; kIo.
[[nodiscard]] Result<ComponentPtr> make_empty(LfsContext& context, const proto::ComponentShape& shape,
                                              std::uint64_t epoch);

}  // namespace pif::lfs
