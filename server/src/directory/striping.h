// The striping of a folder: the layout that files get which are made in it. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "pif/base/result.h"
#include "pif/proto/shapes.pb.h"

namespace pif::server {

// As if there were none.
bool says_nothing(const proto::Striping& striping);
// Whether files can be made so at all; how many LFSs there are, and which, is not looked at. kInvalid says what cannot
// be. default_bevy: of files that say nothing of bevies.
[[nodiscard]] Status check_striping(const proto::Striping& striping, std::uint32_t default_bevy);

// The sizes of the bevies of a file of this width, at most kWidthMax, if all have size `bevy`; 0: none. kInvalid: they
// do not fit.
[[nodiscard]] Result<std::vector<std::uint32_t>> equal_bevies(std::uint32_t bevy, std::uint32_t width);
// kInvalid unless a width (0: nothing was said) is that of the nodes that are named.
[[nodiscard]] Status check_width(std::uint64_t width, int nodes);

}  // namespace pif::server
