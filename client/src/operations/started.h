// Requests of a file that are started, and waited for later.
#pragma once

#include <cstdint>
#include <span>

#include "pif/client/client.h"

namespace pif::client {

class FileState;

// All start at once; errors that show at the start already are returned.
[[nodiscard]] Result<File::Operation> start_read(FileState& file, RecordNumber first, std::span<std::byte> out,
                                                 std::uint64_t count);
[[nodiscard]] Result<File::Operation> start_write(FileState& file, RecordNumber first, std::span<const std::byte> in);
[[nodiscard]] Result<File::Operation> start_read_pieces(FileState& file, const File::Pieces& wanted,
                                                        std::span<std::byte> out);
[[nodiscard]] Result<File::Operation> start_write_pieces(FileState& file, const File::Pieces& wanted,
                                                         std::span<const std::byte> in);
// kInvalid for an operation that is not under way.
[[nodiscard]] Result<std::uint64_t> wait_for(FileState& file, File::Operation operation);
bool is_done(FileState& file, File::Operation operation);
// Ends this operation and all that were started after it; none of them uses its caller's memory any more.
void drop_operations(FileState& file, File::Operation first);

}  // namespace pif::client
