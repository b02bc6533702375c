#include "weave_row.h"

namespace pif::matrix {

void weave_row_bmi2(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
  weave_row(plan, at, words, out, [](std::uint64_t bits, std::uint64_t places, std::uint32_t) {
    return __builtin_ia32_pdep_di(bits, places);
  });
}

}  // namespace pif::matrix
