// Names for numbers in messages (proto/). The numbers never change: other releases have them, too.
#pragma once

#include <cstdint>

namespace pif::wire {

// FileMark.kind
enum MarkKind : std::uint32_t {
  kMarkMixed = 1,  // rows may be old ones
  kMarkLost = 2,   // rows are gone
};

}  // namespace pif::wire
