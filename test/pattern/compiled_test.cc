// Which patterns are refused, and what is known of those that are not.
#include <algorithm>
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include "pattern/bytes.h"

namespace pif::patterns {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Level piece(std::int64_t offset, std::uint64_t bytes) { return {offset, 1, 0, bytes, {}}; }

// `depth` levels around one byte, each with two repetitions if `twice`.
Pattern nested(unsigned depth, bool twice) {
  Level level = piece(0, 1);
  std::int64_t stride = 10;
  for (unsigned i = 1; i < depth; ++i, stride = stride * 2 + 1) level = {0, twice ? 2u : 1u, stride, 0, {level}};
  return {{level}, {}};
}

void check_refused(const Pattern& pattern, Code code, const std::string& text) {
  const Status status = validate(pattern);
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code == code);
  CHECK_THAT(status.error().text, Catch::Matchers::Contains(text));
}

TEST_CASE("a pattern without bytes is refused") {
  check_refused({}, Code::kInvalid, "no bytes");
  check_refused({{piece(3, 0)}, {}}, Code::kInvalid, "no bytes");
  check_refused({{{0, 5, 1, 0, {piece(1, 0), piece(2, 0)}}}, {}}, Code::kInvalid, "no bytes");
}

TEST_CASE("a level that repeats nothing, or two things, is refused") {
  check_refused({{{0, 0, 0, 5, {}}, piece(0, 1)}, {}}, Code::kInvalid, "no repetitions");
  check_refused({{{0, 2, 9, 0, {piece(0, 1), {0, 0, 0, 1, {}}}}}, {}}, Code::kInvalid, "no repetitions");
  check_refused({{{0, 1, 0, 5, {piece(0, 1)}}}, {}}, Code::kInvalid, "both bytes and inner");
}

TEST_CASE("32 levels inside one another are walked, and 33 are refused") {
  CHECK(validate(nested(32, false)).has_value());
  check_refused(nested(33, false), Code::kTooLarge, "over 32 levels");
  const Pattern deep = nested(32, true);
  const Compiled compiled = Compiled::make(deep).value();
  CHECK(compiled.bytes() == std::uint64_t{1} << 31);
  Walker from_last = walker_over(compiled, 0, compiled.bytes() - 1, 2);
  CHECK(from_last.next()->offset == compiled.bounds().highest - 1);
  CHECK(from_last.next()->offset == compiled.extent());
}

TEST_CASE("a pattern of over 2^62 bytes is refused") {
  CHECK(validate({{piece(0, kBytesMax)}, {}}).has_value());
  check_refused({{piece(0, kBytesMax + 1)}, {}}, Code::kTooLarge, "2^62 bytes");
  check_refused({{piece(0, ~std::uint64_t{0})}, {}}, Code::kTooLarge, "2^62 bytes");
  check_refused({{piece(0, kBytesMax), piece(0, 1)}, {}}, Code::kTooLarge, "2^62 bytes");
  CHECK(validate({{{0, kBytesMax, 0, 1, {}}}, {}}).has_value());
  check_refused({{{0, kBytesMax + 1, 0, 1, {}}}, {}}, Code::kTooLarge, "2^62 bytes");
  check_refused({{{0, std::uint64_t{1} << 33, 0, std::uint64_t{1} << 33, {}}}, {}}, Code::kTooLarge, "2^62 bytes");
}

TEST_CASE("a pattern that leaves 64 bits is refused") {
  CHECK(validate({{piece(kMin, 1)}, {}}).has_value());
  CHECK(validate({{piece(kMax - 1, 1)}, {}}).has_value());
  check_refused({{piece(kMax, 1)}, {}}, Code::kTooLarge, "further than");
  check_refused({{{0, 3, kMax / 2, 2, {}}}, {}}, Code::kTooLarge, "further than");
  CHECK(validate({{{1, 3, kMin / 2, 2, {}}}, 5}).has_value());
  check_refused({{{-1, 3, kMin / 2, 2, {}}}, 5}, Code::kTooLarge, "further than");
  check_refused({{{kMin, 1, 0, 0, {piece(-1, 3)}}}, {}}, Code::kTooLarge, "further than");
  check_refused({{{kMax, 1, 0, 0, {piece(0, 3)}}}, {}}, Code::kTooLarge, "further than");
  CHECK(validate({{{kMax, 1, 0, 0, {piece(-3, 3)}}}, {}}).has_value());
  CHECK(validate({{{kMin, 1, 0, 0, {piece(kMax - 3, 3)}}}, {}}).has_value());
  check_refused({{{kMin, 1, 0, 0, {piece(kMax, 3)}}}, {}}, Code::kTooLarge, "further than");
}

TEST_CASE("a default extent that leaves 64 bits is refused, and a given one is not needed then") {
  const std::vector<Level> far = {piece(kMin, 1), piece(0, 1)};
  check_refused({far, {}}, Code::kTooLarge, "further than");
  CHECK(validate({far, 1}).has_value());
}

TEST_CASE("the default extent is from the lowest byte to the end of the highest") {
  const Pattern pattern{{{5, 3, -4, 2, {}}, piece(20, 7)}, {}};
  const Compiled compiled = Compiled::make(pattern).value();
  CHECK(compiled.bytes() == 13);
  CHECK(compiled.bounds().lowest == -3);
  CHECK(compiled.bounds().highest == 27);
  CHECK(compiled.extent() == 30);
  CHECK(Compiled::make({pattern.levels, -8}).value().extent() == -8);
}

TEST_CASE("what the pattern of a random seed has in all is what its bytes have") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Pattern pattern = random_pattern(random);
    const Compiled compiled = Compiled::make(pattern).value();
    const Bytes bytes = bytes_of(pattern);
    const auto [lowest, highest] = std::minmax_element(bytes.begin(), bytes.end());
    REQUIRE(compiled.bytes() == bytes.size());
    REQUIRE(compiled.bounds().lowest == *lowest);
    REQUIRE(compiled.bounds().highest == *highest + 1);
    REQUIRE(compiled.extent() == pattern.extent.value_or(*highest + 1 - *lowest));
    const Bytes tiles = tiled_bytes(bytes, compiled.extent(), 0, 0, 3 * bytes.size());
    const bool falls = std::adjacent_find(tiles.begin(), tiles.end(), std::greater_equal<>()) != tiles.end();
    REQUIRE(compiled.is_rising() == !falls);
  }
}

TEST_CASE("bounds of a request are those of the tiles that it is in") {
  const Compiled compiled = Compiled::make({{piece(2, 3)}, 10}).value();
  const Bounds one = compiled.bounds(100, 4, 2).value();
  CHECK(one.lowest == 112);
  CHECK(one.highest == 115);
  const Bounds three = compiled.bounds(100, 5, 5).value();
  CHECK(three.lowest == 112);
  CHECK(three.highest == 135);
  CHECK(compiled.bounds(100, 5, 0).value().lowest == 100);
  CHECK(compiled.bounds(100, 5, 0).value().highest == 100);
}

TEST_CASE("a request that leaves 64 bits, or ends behind byte 2^62, is refused") {
  const Compiled compiled = Compiled::make({{piece(0, 1)}, kMax / 2}).value();
  CHECK(Walker::make(compiled, 0, 0, 2).has_value());
  CHECK(Walker::make(compiled, kMin, 0, 4).has_value());
  CHECK(Walker::make(compiled, 0, 3, 1).error().code == Code::kTooLarge);
  CHECK(Walker::make(compiled, kMax / 2 + 1, 0, 2).error().code == Code::kTooLarge);
  CHECK(Walker::make(compiled, 0, kBytesMax, 1).error().code == Code::kTooLarge);
  const Compiled still = Compiled::make({{piece(0, 1)}, 0}).value();
  CHECK(Walker::make(still, 0, kBytesMax - 1, 1).has_value());
  CHECK(Walker::make(still, 0, kBytesMax, 1).error().code == Code::kTooLarge);
  CHECK(Walker::make(still, 0, 1, kBytesMax).error().code == Code::kTooLarge);
  CHECK(Walker::make(still, 0, ~std::uint64_t{0}, 1).error().code == Code::kTooLarge);
}

}  // namespace
}  // namespace pif::patterns
