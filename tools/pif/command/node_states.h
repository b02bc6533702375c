// NodeInfo.state, as far as commands go by it.
#pragma once

#include <cstdint>

namespace pif::cli {

inline constexpr std::uint32_t kNodeUp = 1, kNodeStale = 5, kNodeFailing = 6;

}  // namespace pif::cli
