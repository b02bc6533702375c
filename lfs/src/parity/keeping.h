// The state that the operations of parity share. One thread.
#pragma once

#include "context/lfs_context.h"
#include "parity/parity_run.h"
#include "parity/peers.h"
#include "parity/works.h"
#include "requests/seal_sync.h"
#include "store/keeper.h"

namespace pif::lfs {

struct Keeping {
  Keeping(LfsContext& context_in, SealSync& seal_sync_in)
      : context(context_in),
        seal_sync(seal_sync_in),
        peers(context_in),
        works(context_in.fibers, context_in.world.executor) {}

  // So many bytes of the members' rows are not worth descriptors.
  bool are_few(std::uint64_t bytes) const { return bytes < context.config.near_from_bytes; }

  LfsContext& context;
  SealSync& seal_sync;
  Peers peers;
  Works works;
};

// The shape in a request, of a component that keeps parity; and a length that such a file can have. kInvalid.
[[nodiscard]] Result<Keeper> keeper_of(const LfsContext& context, const proto::ComponentShape& shape);
// For each member whether its LFS is absent in this view, so that its rows are not asked for.
std::vector<bool> absent_members(const LfsContext& context, const Keeper& keeper, const proto::ComponentShape& shape);
[[nodiscard]] Status check_file_length(const Format& format, const FileLength& file_length);

}  // namespace pif::lfs
