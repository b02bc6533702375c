#include "append/acting.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/convert.h"

namespace pif::lfs {

Result<LfsIndex> acting_sequencer(const parity::Layout& layout, const proto::ComponentShape& shape,
                                  const ViewState& view) {
  const auto& nodes = shape.layout().nodes();
  PIF_ASSERT(nodes.size() == static_cast<int>(layout.width()), nodes.size(), layout.width());
  if (!keeps_parity(shape) || !view.is_absent(nodes[0])) return LfsIndex{0};
  const LfsIndex deputy = parity::deputy_of(layout);
  PIF_ASSERT(deputy > 0 && deputy < layout.width(), deputy, layout.width());
  const auto node = nodes[static_cast<int>(deputy)];
  if (!view.is_absent(node)) return deputy;
  return fail(Code::kUnavailable,
              fmt::format("file {}: its LFS 0 (node {}) and the deputy of that (node {}) are both absent in view {}: "
                          "nobody takes appends to it before one of them is back",
                          shape.file(), nodes[0], node, view.index()));
}

}  // namespace pif::lfs
