// Numbers in as few bytes as they need, and what is refused.
#include "pif/tool/narrow.h"

#include <vector>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace pif::tool {
namespace {

using Numbers = std::vector<std::uint32_t>;

std::vector<std::byte> pack(const Numbers& numbers, Room room) {
  const std::uint32_t largest = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
  const std::size_t width = narrow_width(largest, room);
  std::vector<std::byte> out(1 + numbers.size() * width);
  const std::byte* const end =
      pack_narrow(numbers.size(), width, out.data(), [&](std::uint64_t i) { return numbers[i]; });
  REQUIRE(end == out.data() + out.size());
  return out;
}

}  // namespace

TEST_CASE("numbers come back, and what follows them is left") {
  CHECK(rc::check("any numbers", [] {
    auto numbers = *rc::gen::arbitrary<Numbers>();
    const unsigned shift = *rc::gen::inRange(0U, 32U);
    for (std::uint32_t& number : numbers) number >>= shift;
    const Room room = *rc::gen::element(Room::kAsNeeded, Room::kAlways);
    auto bytes = pack(numbers, room);
    bytes.resize(bytes.size() + 3);
    std::span<const std::byte> rest = bytes;
    const auto found = NarrowNumbers::take(rest, numbers.size(), room);
    RC_ASSERT(found.has_value() && found->size() == numbers.size() && rest.size() == 3);
    for (std::size_t i = 0; i < numbers.size(); ++i) RC_ASSERT((*found)[i] == numbers[i]);
  }));
}

TEST_CASE("numbers take as many bytes as the largest of them") {
  CHECK(pack({0, 0, 0}, Room::kAsNeeded).size() == 1);
  CHECK(pack({0, 0, 0}, Room::kAlways).size() == 1 + 3);
  CHECK(pack({1, 255, 0}, Room::kAsNeeded).size() == 1 + 3);
  CHECK(pack({1, 256, 0}, Room::kAsNeeded).size() == 1 + 6);
  CHECK(pack({1u << 16}, Room::kAsNeeded).size() == 1 + 3);
  CHECK(pack({UINT32_MAX}, Room::kAsNeeded).size() == 1 + 4);
}

TEST_CASE("numbers that are not there, or have no room where each must have some, are refused") {
  const auto is_refused = [](std::vector<std::byte> bytes, std::uint64_t count, Room room) {
    std::span<const std::byte> rest = bytes;
    return !NarrowNumbers::take(rest, count, room).has_value();
  };
  const auto of_width = [](int width, std::size_t bytes) {
    std::vector<std::byte> out(1 + bytes);
    out[0] = static_cast<std::byte>(width);
    return out;
  };
  CHECK(is_refused({}, 0, Room::kAsNeeded));
  CHECK(is_refused(of_width(2, 5), 3, Room::kAsNeeded));
  CHECK(is_refused(of_width(1, 5), UINT64_MAX, Room::kAsNeeded));
  CHECK(is_refused(of_width(5, 50), 1, Room::kAsNeeded));
  CHECK(is_refused(of_width(0, 5), 1, Room::kAlways));
  CHECK(!is_refused(of_width(0, 0), UINT64_MAX, Room::kAsNeeded));
  CHECK(!is_refused(of_width(2, 6), 3, Room::kAlways));
}

}  // namespace pif::tool
