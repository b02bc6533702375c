// Whether a data file that is shorter than its environment is damaged, found without mapping it: LMDB itself would end
// the process, by an assertion or by SIGBUS.
#pragma once

#include <cstdint>
#include <string>

#include "pif/base/result.h"

namespace pif::kv {

// Whether every page that the newest state of data file `path` uses lies wholly within the file. A file may lawfully be
// shorter than its highest page number says: LMDB does not write a page that a transaction took and gave back.
[[nodiscard]] Result<bool> all_pages_present(const std::string& path);

}  // namespace pif::kv
