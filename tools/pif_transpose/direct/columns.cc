#include "direct/columns.h"

#include "pif/tool/parallel.h"
#include "pif/tool/parts.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kTilesAtLeast = 4;  // side by side, for a thread

}  // namespace

// Threads have whole tiles, so that no two of them read the same cache lines; and the columns before the first wanted
// one, which all go to one place, are of the first thread.
void transpose_columns(unsigned threads, matrix::ConstRows in, std::uint64_t rows, std::span<std::byte* const> places,
                       matrix::Element element) {
  const std::uint64_t unit = kTilesAtLeast * matrix::tile_elements(element);
  const tool::Parts parts({0, places.size()}, {.most = threads, .unit = unit});
  tool::for_each_part(threads, parts.size(), [&](std::uint64_t i) {
    const Range part = parts[i];
    const matrix::ConstRows from{in.base + element.bytes_of(part.begin), in.pitch};
    const matrix::RowPlaces to{places.subspan(part.begin, part.size()), 0};
    matrix::transpose(from, rows, part.size(), to, element);
  });
}

}  // namespace pif::transpose
