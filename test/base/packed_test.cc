#include "pif/base/packed.h"

#include <array>

#include <catch2/catch.hpp>

namespace pif {

TEST_CASE("numbers come back as they were packed, little-endian, wherever they lie") {
  const std::array<std::uint32_t, 3> numbers = {1, 0x01020304, UINT32_MAX};
  const std::string bytes = "x" + packed(std::span<const std::uint32_t>(numbers)) + "yz";
  CHECK(bytes.substr(5, 4) == "\x04\x03\x02\x01");
  auto rest = std::as_bytes(std::span(bytes)).subspan(1);
  const auto back = PackedNumbers<std::uint32_t>::take(rest, 3);
  REQUIRE(back);
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK((*back)[i] == numbers[i]);
  CHECK(rest.size() == 2);
}

TEST_CASE("fewer or more bytes than there must be numbers are none") {
  const std::string bytes(16, '\0');
  const auto all = std::as_bytes(std::span(bytes));
  using Numbers = PackedNumbers<std::uint64_t>;
  CHECK(Numbers::all_of(all, 2)->size() == 2);
  CHECK(!Numbers::all_of(all, 1));
  CHECK(!Numbers::all_of(all, 3));
  CHECK(!Numbers::all_of(all.first(15), 2));
  CHECK(!Numbers::all_of(all, UINT64_MAX));
  CHECK(!Numbers::all_of(all, (std::uint64_t{1} << 61) + 2));  // times 8 it would be 16
  CHECK(Numbers::all_of(all.first(0), 0)->empty());
  auto rest = all;
  CHECK(!Numbers::take(rest, 3));
  CHECK(rest.size() == 16);
}

}  // namespace pif
