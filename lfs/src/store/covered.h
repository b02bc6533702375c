// Which pages an LFS has beyond those that are known to be of published rows (ComponentState.covered). Pure.
#pragma once

#include <cstdint>
#include <deque>

#include "pif/proto/messages.pb.h"
#include "store/keeper.h"

namespace pif::lfs {

inline constexpr int kCoveredMax = 64;  // entries

// The component's parity comes to `generation`, which began at `base`: what was covered beyond it before is void.
void begin_parity_generation(const Keeper& keeper, std::uint64_t generation, const FileLength& base,
                             proto::ComponentState& state);
// `pages` are there, of that generation.
void add_covered(Range pages, std::uint64_t generation, proto::ComponentState& state);
// Pages up to `pages` are of published rows, and all are there.
void set_pages(std::uint64_t pages, proto::ComponentState& state);
// Whether a page is there; those of `range` that are not.
bool has_page(const proto::ComponentState& state, std::uint64_t page);
std::deque<Range> missing_pages(const proto::ComponentState& state, Range range);
// Behind the pages that are there from the first one on without a gap.
std::uint64_t end_of_pages(const proto::ComponentState& state);
// Behind the last page that is there. A length that somebody has published without rows may be far longer.
std::uint64_t behind_pages(const proto::ComponentState& state);

}  // namespace pif::lfs
