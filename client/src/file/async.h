// One started request for records. What goes by message is under way; what goes through descriptors is done at the
// start, since it is a copy from or to the page cache.
#pragma once

#include <cstdint>

#include "file/file_state.h"

namespace pif::client {

struct AsyncOperation {
  explicit AsyncOperation(FileState& file) : requests(file.session->links(), file.grant) {}
  access::Requests requests;
  std::uint64_t records = 0;
};

// Both start at once; errors that show at the start already are returned.
[[nodiscard]] Result<File::Operation> start_read(FileState& file, RecordNumber first, std::span<std::byte> out,
                                                 std::uint64_t count);
[[nodiscard]] Result<File::Operation> start_write(FileState& file, RecordNumber first, std::span<const std::byte> in);
// kInvalid for an operation that is not under way.
[[nodiscard]] Result<std::uint64_t> wait_for(FileState& file, File::Operation operation);
bool is_done(FileState& file, File::Operation operation);

}  // namespace pif::client
