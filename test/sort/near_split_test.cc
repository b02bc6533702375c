#include <catch2/catch.hpp>

#include "../../tools/pif_sort/split/near_split.h"

namespace pif::sort {
namespace {

using Cores = std::vector<std::vector<std::uint32_t>>;
using Before = std::vector<std::uint32_t>;

TEST_CASE("no more workers merge than they have cores, and all do that have some of their own") {
  CHECK((mergers_before(Cores{{0}}) == Before{0, 1}));
  CHECK((mergers_before(Cores{{0, 1}, {0, 1}, {0, 1}, {0, 1}}) == Before{0, 1, 2, 2, 2}));
  CHECK((mergers_before(Cores{{0, 1, 2}, {0, 1, 2}}) == Before{0, 1, 2}));
  CHECK((mergers_before(Cores{{4}, {5}, {6}}) == Before{0, 1, 2, 3}));
  CHECK((mergers_before(Cores{{0}, {1}, {0}, {0, 1}, {1}}) == Before{0, 1, 2, 2, 3, 3}));
}

}  // namespace
}  // namespace pif::sort
