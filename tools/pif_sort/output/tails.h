// How the components of an output end so far: what one worker hands on to the next.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/result.h"
#include "pif/component/component.h"
#include "pif/component/stretch.h"

namespace pif::sort {

std::string pack_tails(std::span<const component::Tail> tails);
// count: of components. kCorrupt, naming the worker of that rank, if the bytes are not its tails.
Result<std::vector<component::Tail>> unpack_tails(std::string_view bytes, std::uint32_t rank, std::size_t count);

// The same where workers write stretches.
std::string pack_seams(std::span<const component::Seam> seams);
Result<std::vector<component::Seam>> unpack_seams(std::string_view bytes, std::uint32_t rank, std::size_t count);

}  // namespace pif::sort
