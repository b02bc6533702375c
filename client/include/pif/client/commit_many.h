// commit_sealed() of session.h, for many files at once. Private to client/ and libtool/.
#pragma once

#include <span>
#include <vector>

#include "pif/client/session.h"

namespace pif::client {

// Files of that session, all sealed, and the length of each: their commits share transactions and syncs. How each
// ended, in their order; one that fails takes no other with it.
[[nodiscard]] std::vector<Status> commit_sealed_many(Session& session, std::span<File* const> files,
                                                     std::span<const FileLength> file_lengths);

}  // namespace pif::client
