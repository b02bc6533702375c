// A request for pieces, as the C interface has it.
#pragma once

#include <optional>

#include "c_api/c_run.h"

namespace pif::c_api {

// The four ways to move pieces.
enum class How { kRead, kWrite, kStartRead, kStartWrite };
// Bytes moved, or the operation.
[[nodiscard]] Result<std::uint64_t> transfer(File& file, How how, const File::Pieces& pieces,
                                             std::span<std::byte> memory);

}  // namespace pif::c_api
