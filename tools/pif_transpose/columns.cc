#include "columns.h"

#include <algorithm>

#include "pif/tool/parallel.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kTilesAtLeast = 4;  // side by side, for a thread

}  // namespace

// Threads have whole tiles, so that no two of them read the same cache lines; and the columns before the first wanted
// one, which all go to one place, are of the first thread.
void transpose_columns(unsigned threads, matrix::ConstRows in, std::uint64_t rows, std::span<std::byte* const> places,
                       matrix::Element element) {
  const std::uint64_t unit = kTilesAtLeast * matrix::tile_elements(element);
  const std::uint64_t parts = std::clamp<std::uint64_t>(places.size() / unit, 1, threads);
  tool::for_each_part(threads, parts, [&](std::uint64_t i) {
    const std::uint64_t begin = places.size() / parts * i / unit * unit;
    const std::uint64_t end = i + 1 == parts ? places.size() : places.size() / parts * (i + 1) / unit * unit;
    const matrix::ConstRows from{in.base + element.bytes_of(begin), in.pitch};
    matrix::transpose(from, rows, end - begin, matrix::RowPlaces{places.subspan(begin, end - begin), 0}, element);
  });
}

}  // namespace pif::transpose
