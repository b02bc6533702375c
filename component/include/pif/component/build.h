// The build of a program that lies in a file.
#pragma once

#include <string>

#include "pif/component/storage.h"

namespace pif::component {

// Its build id (pif/base/build_id.h); empty: it has none, or cannot be read. Any thread.
std::string build_of(File& program);

}  // namespace pif::component
