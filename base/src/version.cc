#include "pif/base/version.h"

namespace pif {

std::string_view version() { return PIF_VERSION; }

}  // namespace pif
