// Short pieces into a component that several processes of one machine write at the same time: through a mapping of its
// .dat, for a system call for each piece costs far more than the piece.
#pragma once

#include <span>

#include "pif/component/extents.h"

namespace pif::component {

// The same as write_extents(data, extents, false), for programs that may handle SIGBUS: the first call installs a
// handler for the process, which passes on what is not its own. Daemons do not
// call it.
//
// Where short pieces lie close together, room is reserved in the pages that they are in, and no other, and they are
// copied there. The file gets no longer than its last piece. All else, and all on files that cannot be mapped or
// reserved, is written piece by piece. kIo also: the file was cut off during the copy, or its disk failed.
[[nodiscard]] Status write_extents_mapped(File& data, std::span<const ConstExtent> extents);

}  // namespace pif::component
