#include "store/kept_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "store/convert.h"
#include "store/published_tickets.h"

namespace pif::lfs {

Status check_kept(const Keeper& keeper, const proto::ComponentState& state) {
  PIF_ASSERT(keeper.shape.file.value == state.shape().file(), keeper.shape.file.value, state.shape().file());
  const auto wrong = [&](std::string_view what) {
    return fail(Code::kCorrupt, fmt::format("file {}: the catalogue has {}", name_of(keeper.shape.file), what));
  };
  const std::uint64_t pages_max = kFileBytesMax / (keeper.shape.page_rows() * keeper.layout.width());
  const auto is_possible = [pages_max](const proto::CoveredPages& pages) {
    return pages.first() <= pages_max && pages.count() <= pages_max - pages.first();
  };
  if (state.pages() > pages_max || !std::all_of(state.covered().begin(), state.covered().end(), is_possible))
    return wrong("pages of parity that no file has");
  for (const auto* length : {&state.published(), &state.parity_base(), &state.noted().file_length()})
    if (length->records() > kFileBytesMax) return wrong("a length that no file has");
  if (!check_generation(newest_generation(state)) || !check_generation(state.noted().generation()))
    return wrong("a generation that no sequencer gives out");
  if (!check_tickets(state.published_tickets())) return wrong("published tickets that are no list of them");
  return {};
}

}  // namespace pif::lfs
