// Which run of the server gave out an id (docs/FORMAT.md "Who is how old").
#pragma once

#include <cstdint>

#include "directory/rows.h"
#include "pif/base/result.h"

namespace pif::server {

// Whether that run did: it knows then what became of the file.
[[nodiscard]] Result<bool> is_id_of_run(Rows& rows, std::uint64_t id, std::uint64_t run);

}  // namespace pif::server
