// Whether what the catalogue says of a component's parity can be. Its checksum holds for what was written, and whoever
// wrote it may have been wrong. Pure.
#pragma once

#include "pif/base/result.h"
#include "pif/proto/messages.pb.h"
#include "store/keeper.h"

namespace pif::lfs {

// kCorrupt, naming the file: for numbers of pages, records and generations that no file has, with which arithmetic
// would wrap, and for published tickets that are no list of them. keeper: of state.shape().
[[nodiscard]] Status check_kept(const Keeper& keeper, const proto::ComponentState& state);

}  // namespace pif::lfs
