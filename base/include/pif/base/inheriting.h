// Settings that a new file takes from its folder (docs/PROTOCOL.md "Striping"). The numbers never change: they travel.
#pragma once

#include <cstdint>

namespace pif {

// In place of a size of bevies: none, whatever the folder and the file system have. 0 leaves it to them.
inline constexpr std::uint32_t kNoBevies = UINT32_MAX;

// Create.inherits, one bit each
inline constexpr std::uint32_t kInheritsFormat = 1;
inline constexpr std::uint32_t kInheritsNodes = 2;  // and width
inline constexpr std::uint32_t kInheritsBevies = 4;

}  // namespace pif
