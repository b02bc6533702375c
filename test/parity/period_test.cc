#include "pif/parity/period.h"

#include <map>

#include <catch2/catch.hpp>

#include "layouts.h"

namespace pif::parity {

TEST_CASE("records are dealt out in a pattern that repeats after its period, the same number to every LFS") {
  CHECK(period_of(Layout::make(5).value()) == 5);
  CHECK(period_of(layout_of({2, 2})) == 4);
  for (const Bevies& sizes : sample_bevies()) {
    const Layout layout = layout_of(sizes);
    const std::uint64_t period = period_of(layout);
    std::map<LfsIndex, std::uint64_t> held;
    for (RecordNumber n = 0; n < period; ++n) {
      ++held[layout.locate(n).lfs];
      CHECK(layout.locate(n).lfs == layout.locate(n + period).lfs);
    }
    for (const auto& [lfs, records] : held) CHECK(records == period / layout.width());
  }
}

}  // namespace pif::parity
