// Forks of a file, for its copy.
#pragma once

#include <string>

#include "pif/client/client.h"

namespace pif::cli {

// Each fork of `source` becomes one of `copy`, which is being created: they are seen with it. Nobody may write to one
// meanwhile (kBusy).
[[nodiscard]] Status copy_forks(Client& client, const File& source, const File& copy);
[[nodiscard]] Result<bool> has_forks(Client& client, const File& file);
// Whether the path is that of a fork of a file that is there.
[[nodiscard]] Result<bool> is_fork(Client& client, const std::string& path);

}  // namespace pif::cli
