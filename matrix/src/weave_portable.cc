#include "weave_row.h"

namespace pif::matrix {

void weave_row_portable(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
  weave_row(plan, at, words, out, [&](std::uint64_t bits, std::uint64_t places, std::uint32_t field) {
    const Moves& moves = plan.moves[field];
    for (unsigned i = 0; i < 6; ++i) bits = (bits & ~moves.by[i]) | (bits << (32U >> i) & moves.by[i]);
    return bits & places;
  });
}

}  // namespace pif::matrix
