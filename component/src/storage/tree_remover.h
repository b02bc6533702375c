// Removes a folder and all below it, as somebody who may be hostile left it: however deep it is, no more than some 64
// descriptors are held, and no link is followed.
#pragma once

#include <string>

#include "pif/base/result.h"

namespace pif::component {

// Nothing at `path` is fine. Stops at the first error; what is removed by then stays removed. Nobody may add anything
// meanwhile.
[[nodiscard]] Status remove_tree_at(const std::string& path);

}  // namespace pif::component
