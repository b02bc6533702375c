// Key specifications as people type them.
#pragma once

#include "keys/keys.h"

namespace pif::sort {

// At least one key. kInvalid says which is wrong, and how.
Result<std::vector<Key>> parse_keys(const KeyOptions& options, const Format& format);

}  // namespace pif::sort
