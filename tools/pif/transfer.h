// Bytes between local descriptors and interleaved files, exact in both directions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pif/client/client.h"
#include "text.h"

namespace pif::cli {

// Hears of bytes as they move; kCancelled from it ends the transfer.
using OnBytes = std::function<Status(std::uint64_t bytes)>;

// Reads `fd` to its end into a file being created: records of its length (the last may be short), or split after each
// delimiter. `name` is for messages. Returns bytes stored.
[[nodiscard]] Result<std::uint64_t> fill(File& file, int fd, const std::string& name, const OnBytes& on_bytes);

// Writes the bytes of records `range` (clipped to the file) to `fd`. Returns bytes written.
[[nodiscard]] Result<std::uint64_t> drain(File& file, const OpenRange& range, int fd, const std::string& name,
                                          const OnBytes& on_bytes);

}  // namespace pif::cli
