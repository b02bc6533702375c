// Requests for many pieces of a file's bytes, which patterns describe (pif/pattern/pattern.h).
#pragma once

#include <cstdint>
#include <span>

#include "pif/client/client.h"

namespace pif::client {

class FileState;

// File::read_pieces() and File::write_pieces().
[[nodiscard]] Result<std::uint64_t> read_pieces(FileState& file, const File::Pieces& wanted, std::span<std::byte> out);
[[nodiscard]] Status write_pieces(FileState& file, const File::Pieces& wanted, std::span<const std::byte> in);

}  // namespace pif::client
