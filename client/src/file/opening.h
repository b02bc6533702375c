// Opening what has no path here.
#pragma once

#include <cstdint>

#include "pif/client/client.h"

namespace pif::client {

// A committed file, for reading, by its id, which somebody who has it open has told. Errors: those of Client::open();
// kStaleFile: it is gone, or may not be reached.
[[nodiscard]] Result<File> open_by_id(Client& client, std::uint64_t file);

}  // namespace pif::client
