#include <catch2/catch.hpp>

#include "../../lfs/src/store/covered.h"

using namespace pif;
using namespace pif::lfs;

namespace {

const FileId kFile(12);
const Format kFormat = Format::fixed(4096);

Keeper keeper() {
  const auto layout = parity::Layout::make(4, std::vector<std::uint32_t>{2, 2});
  REQUIRE(layout.has_value());
  return Keeper::of(component::Shape::of(kFile, kFormat, 1), *layout, 2);
}

// The shortest file of which the keeper has so many pages.
FileLength length_with(const Keeper& keeper, std::uint64_t pages) {
  FileLength out;
  while (keeper.pages(out) < pages) out = {out.records + 1, out.bytes + kFormat.record_length};
  return out;
}

}  // namespace

TEST_CASE("covered: a new generation voids the pages behind its base, and no published ones of the same entry") {
  const Keeper of = keeper();
  proto::ComponentState state;
  begin_parity_generation(of, 1, length_with(of, 3), state);
  add_covered({3, 4}, 1, state);  // of a range that is published
  add_covered({4, 6}, 1, state);  // of one that is cancelled
  REQUIRE(state.covered_size() == 1);
  begin_parity_generation(of, 1, length_with(of, 3), state);
  CHECK(has_page(state, 5));
  begin_parity_generation(of, 2, length_with(of, 4), state);
  CHECK(has_page(state, 3));
  CHECK(!has_page(state, 4));
  CHECK(!has_page(state, 5));
  CHECK(state.parity_generation() == 2);
  CHECK(state.parity_base().records() == length_with(of, 4).records);
  begin_parity_generation(of, 3, FileLength(), state);
  CHECK(state.covered_size() == 0);
}
