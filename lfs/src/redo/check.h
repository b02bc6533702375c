// Checks of one component's files: nothing but these is looked at.
#pragma once

#include <string>
#include <vector>

#include "pif/component/component.h"
#include "pif/proto/messages.pb.h"

namespace pif::lfs {

// Adds a line for everything that does not hold: a missing or short file, and with `sums` every chunk that fails its
// sum. Any thread. Files longer than the tail says are none: rows of an append that did not come to its end.
void check_files(component::Storage& storage, const std::string& stem, const component::Shape& shape,
                 const component::Tail& tail, bool sums, std::vector<std::string>& damages);

// The same of its parity: files that lack, with `sums` pages that do not hold; and every row of which the published
// length that is known here says that its parity is here must be in a page or a frame. Any thread.
void check_parity(component::Storage& storage, const std::string& stem, const proto::ComponentState& state, bool sums,
                  std::vector<std::string>& damages);

}  // namespace pif::lfs
