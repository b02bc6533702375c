// Which LFS of a file sequences its appends. Pure; any thread.
#pragma once

#include "context/view_state.h"
#include "pif/base/result.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"

namespace pif::lfs {

// LFS 0 of the file. If it keeps parity, and that node is absent in the view, its deputy. kUnavailable, naming both
// nodes: the deputy is absent, too. shape: of any LFS of the file; layout: the shape's.
[[nodiscard]] Result<LfsIndex> acting_sequencer(const parity::Layout& layout, const proto::ComponentShape& shape,
                                                const ViewState& view);

}  // namespace pif::lfs
