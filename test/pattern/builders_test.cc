// Every builder against the loop that its paper defines it by.
#include <array>
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include "pattern/bytes.h"
#include "pif/pattern/builders.h"

namespace pif::patterns {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::int64_t whole(std::uint64_t number) { return static_cast<std::int64_t>(number); }

void check_code(const Result<Pattern>& result, Code code) {
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == code);
}

TEST_CASE("a range is its bytes, and its tiles follow one another") {
  Bytes expected;
  append_piece(100, 21, expected);
  CHECK(walked(range(100, 7), 21) == expected);
  CHECK(walked(range(-5, 3)) == Bytes{-5, -4, -3});
}

TEST_CASE("simple-strided: each record begins one stride behind the one before") {
  for (const std::int64_t stride : {-100, -10, -3, 0, 3, 10, 64}) {
    Bytes expected;
    std::int64_t offset = 50;
    for (int record = 0; record < 9; ++record, offset += stride) append_piece(offset, 10, expected);
    CHECK(walked(simple_strided(50, 10, stride, 9)) == expected);
  }
}

TEST_CASE("nested-strided: the first stride is the innermost") {
  const std::array<Stride, 3> strides = {{{10, 3}, {-100, 2}, {7, 4}}};
  Bytes expected;
  for (std::int64_t outer = 0; outer < 4; ++outer)
    for (std::int64_t middle = 0; middle < 2; ++middle)
      for (std::int64_t inner = 0; inner < 3; ++inner)
        append_piece(1000 + inner * 10 - middle * 100 + outer * 7, 5, expected);
  CHECK(walked(nested_strided(1000, 5, strides).value()) == expected);
}

TEST_CASE("nested-strided without strides is one record, and over 32 strides are refused") {
  CHECK(walked(nested_strided(4, 2, {}).value()) == Bytes{4, 5});
  CHECK(validate(nested_strided(4, 2, std::vector<Stride>(32)).value()).has_value());
  check_code(nested_strided(4, 2, std::vector<Stride>(33)), Code::kTooLarge);
}

// gfs_read_batched() as the paper tells it: `parent` is where this repetition of the enclosing batch is, and moved how
// far that is from its first repetition.
std::int64_t read_batched(const std::vector<Batch>& batches, std::int64_t parent, std::int64_t shift, Bytes& out) {
  std::int64_t begin = parent, end = parent;
  for (const Batch& batch : batches) {
    if (batch.origin == Origin::kAbsolute) begin = shift + batch.offset;
    if (batch.origin == Origin::kPrevious) begin += batch.offset;
    if (batch.origin == Origin::kPreviousEnd) begin = end + batch.offset;
    for (std::uint64_t i = 0; i < batch.quantity; ++i) {
      const std::int64_t moved = whole(i) * batch.stride;
      if (batch.inner.empty()) append_piece(begin + moved, batch.size, out);
      end = batch.inner.empty() ? begin + moved + whole(batch.size)
                                : read_batched(batch.inner, begin + moved, shift + moved, out);
    }
  }
  return end;
}

std::vector<Batch> random_batches(Random& random, unsigned depth) {
  std::vector<Batch> batches(1 + random.below(3));
  for (Batch& batch : batches) {
    batch.offset = random.between(-20, 50);
    batch.origin = static_cast<Origin>(random.below(3));
    batch.quantity = 1 + random.below(3);
    batch.stride = random.between(-60, 60);
    if (depth > 1 && random.one_in(2))
      batch.inner = random_batches(random, depth - 1);
    else
      batch.size = 1 + random.below(6);
  }
  return batches;
}

TEST_CASE("nested-batched: vectors and trees of batches are read as the paper tells it") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const std::vector<Batch> batches = random_batches(random, 4);
    Bytes expected;
    read_batched(batches, 0, 0, expected);
    REQUIRE(walked(nested_batched(batches).value()) == expected);
  }
}

TEST_CASE("nested-batched: offsets count from the request, from the batch before, or from its end") {
  const auto batch = [](std::int64_t offset, Origin origin) { return Batch{offset, origin, 2, 10, 2, {}}; };
  CHECK(walked(nested_batched(std::vector{batch(5, Origin::kPrevious), batch(7, Origin::kAbsolute),
                                          batch(1, Origin::kPrevious), batch(1, Origin::kPreviousEnd)})
                   .value()) == Bytes{5, 6, 15, 16, 7, 8, 17, 18, 8, 9, 18, 19, 21, 22, 31, 32});
}

TEST_CASE("nested-batched: what cannot be written down is refused") {
  check_code(nested_batched(std::vector{Batch{0, Origin::kAbsolute, 0, 0, 1, {}}}), Code::kInvalid);
  check_code(nested_batched(std::vector{Batch{0, Origin::kAbsolute, 3, kMax, 1, {}}}), Code::kTooLarge);
  const Batch far{kMax - 1, Origin::kAbsolute, 1, 0, 1, {}};
  CHECK(nested_batched(std::vector{far}).has_value());
  check_code(nested_batched(std::vector{far, Batch{5, Origin::kPrevious, 1, 0, 1, {}}}), Code::kTooLarge);
  check_code(nested_batched(std::vector{Batch{-kMax, Origin::kAbsolute, 1, 0, 0, {far}}}), Code::kTooLarge);
  Batch deep = far;
  for (int i = 1; i < 33; ++i) deep = Batch{0, Origin::kPrevious, 1, 0, 0, {deep}};
  check_code(nested_batched(std::vector{deep}), Code::kTooLarge);
  CHECK(nested_batched(deep.inner).has_value());
}

TEST_CASE("a list is read in its order, whatever overlaps") {
  const std::array<Piece, 5> pieces = {{{30, 4}, {0, 2}, {2, 3}, {1, 0}, {3, 2}}};
  Bytes expected;
  for (const Piece& piece : pieces) append_piece(piece.offset, piece.size, expected);
  CHECK(walked(list(pieces)) == expected);
}

TEST_CASE("a partition's groups begin one stride apart, without an end") {
  Bytes expected;
  for (std::int64_t group = 0; group < 1000; ++group) append_piece(70 + group * 30, 12, expected);
  CHECK(walked(partition(70, 12, 30), 12000) == expected);
}

TEST_CASE("a view is its filetype, moved and tiled over the filetype's extent") {
  const Pattern filetype{{{4, 2, 8, 3, {}}, {1, 1, 0, 2, {}}}, {}};  // lowest 1, end of the highest 15
  const Bytes tile = bytes_of(filetype);
  CHECK(walked(view(500, filetype), 24) == tiled_bytes(tile, 14, 500, 0, 24));
  CHECK(walked(view(500, {filetype.levels, 40}), 24) == tiled_bytes(tile, 40, 500, 0, 24));
}

TEST_CASE("the members of a parallel-open file share its records out, one after another") {
  for (std::uint64_t members = 1; members <= 5; ++members)
    for (std::uint64_t member = 0; member < members; ++member) {
      Bytes expected;
      for (std::uint64_t read = 0; read < 10; ++read)  // each read takes one record for each member
        append_piece(whole((3 + read * members + member) * 8), 8, expected);
      CHECK(walked(member_of(member, members, 8, 3).value(), 80) == expected);
    }
}

TEST_CASE("a member that there is not, or that is too far away, is refused") {
  check_code(member_of(3, 3, 8), Code::kInvalid);
  check_code(member_of(0, 0, 8), Code::kInvalid);
  const std::uint64_t far = std::uint64_t{1} << 60;
  CHECK(member_of(0, 1, 7, far).has_value());
  check_code(member_of(0, 1, 8, far), Code::kTooLarge);
  check_code(member_of(0, far, 8), Code::kTooLarge);
  check_code(member_of(0, far, 17), Code::kTooLarge);
  check_code(member_of(1, 2, 8, ~std::uint64_t{0}), Code::kTooLarge);
}

}  // namespace
}  // namespace pif::patterns
