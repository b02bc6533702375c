// What can be said of one component's files by looking at them.
#pragma once

#include <string>
#include <vector>

#include "pif/component/component.h"

namespace pif::lfs {

// Adds a line for everything that does not hold: a missing or short file, and with `sums` every chunk that fails its
// sum. Any thread. Files longer than the tail says are none: rows of an append that did not come to its end.
void check_files(component::Storage& storage, const std::string& stem, const component::Shape& shape,
                 const component::Tail& tail, bool sums, std::vector<std::string>& damages);

}  // namespace pif::lfs
