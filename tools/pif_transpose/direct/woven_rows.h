// The destination of a direct transpose: a window that holds the pieces of one stripe, of all LFSs of the input for all
// of its own rows, and puts the rows together and writes them when all pieces are there.
//
// The window's writer may be in another process: whoever calls write() knows that they are done. Not
// thread-safe.
#pragma once

#include <vector>

#include "direct/direct_plan.h"
#include "pif/matrix/weave.h"
#include "pif/tool/shared_memory.h"
#include "pif/tool/worker.h"

namespace pif::transpose {

class WovenRows {
 public:
  // from: of the input. worker, output and plan outlive it.
  WovenRows(tool::Worker& worker, tool::Output& output, const parity::Layout& from, const DirectPlan& plan);
  // Takes the memory.
  [[nodiscard]] Status open();
  const tool::SharedMemory& memory() const { return window_; }

  // Pieces from LFS `source` of the input for all slots of the stripe, packed: `bytes` bytes of each, at `offset`.
  // kInvalid if that does not fit.
  [[nodiscard]] Status accept(const Stripe& stripe, LfsIndex source, std::uint64_t offset, std::uint64_t bytes,
                              std::span<const std::byte> pieces);
  // All rows of the stripe, from its pieces, on the worker's threads.
  [[nodiscard]] Status write(const Stripe& stripe);

 private:
  std::uint64_t slots_of(const Stripe& stripe) const;
  [[nodiscard]] Status write_part(Range rows, std::uint64_t slot);

  tool::Worker& worker_;
  tool::Output& output_;
  const DirectPlan& plan_;
  std::uint32_t sources_;
  matrix::Weave weave_;
  tool::SharedMemory window_;
};

}  // namespace pif::transpose
