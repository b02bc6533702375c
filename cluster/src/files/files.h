// Small files that must be whole: written aside, synced, then given their name.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::cluster {

// The whole file. kTooLarge if it has more than `bytes_max` bytes.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

enum class Existing : unsigned char { kReplace, kKeep };
// Durable when it returns, with exactly `mode`. A reader sees the old file or the new one. With kKeep a file of that
// name makes it fail with kExists.
[[nodiscard]] Status write_file(const std::string& path, std::string_view bytes, mode_t mode, Existing existing);

// Makes `path` with exactly `mode`, and the folders above it. One that exists is left as it is.
[[nodiscard]] Status make_folder(const std::string& path, mode_t mode);
[[nodiscard]] Status sync_folder(const std::string& path);

}  // namespace pif::cluster
