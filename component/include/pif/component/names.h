// Names of a component's files (docs/FORMAT.md "Component").
#pragma once

#include <string>
#include <vector>

#include "pif/base/format.h"

namespace pif::component {

// Those that every component of that format has. stem: as of the component (component.h).
[[nodiscard]] std::vector<std::string> needed_names(const std::string& stem, const Format& format);
// All that a component can have, its parity's too.
[[nodiscard]] std::vector<std::string> possible_names(const std::string& stem);

}  // namespace pif::component
