// Walks over random patterns against a loop over their bytes, and what regular patterns are worth.
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>

#include <catch2/catch.hpp>

#include "pattern/bytes.h"
#include "pif/pattern/builders.h"
#include "pif/pattern/zip.h"

namespace pif::patterns {
namespace {

// Takes a random step; at most that many bytes, if it says how many.
std::uint64_t random_limit(Random& random) { return random.one_in(3) ? kBytesMax : 1 + random.below(30); }

void append_run(const Run& run, Bytes& out) {
  REQUIRE((run.count > 1 || run.stride == 0));
  for (std::uint64_t i = 0; i < run.count; ++i)
    append_piece(run.offset + static_cast<std::int64_t>(i) * run.stride, run.size, out);
}

Bytes walked_in_steps(Walker walker, Random& random) {
  Bytes out;
  while (walker.left() > 0) {
    const std::uint64_t limit = random_limit(random);
    const std::size_t before = out.size();
    if (random.one_in(2)) {
      append_run(walker.next_run(limit).value(), out);
    } else {
      const std::uint64_t whole = walker.piece_bytes();
      const std::int64_t offset = walker.offset();
      const Piece piece = walker.next(limit).value();
      REQUIRE(piece == Piece{offset, std::min(limit, whole)});
      append_piece(piece.offset, piece.size, out);
    }
    REQUIRE(out.size() > before);
    REQUIRE(out.size() - before <= limit);
  }
  REQUIRE_FALSE(walker.next().has_value());
  REQUIRE_FALSE(walker.next_run().has_value());
  return out;
}

// One side of a request.
struct Side {
  explicit Side(Random& random) : pattern(random_pattern(random)), compiled(Compiled::make(pattern).value()) {
    displacement = random.between(-1000, 1000);
    skip = random.below(3 * compiled.bytes());
  }
  Walker walker(std::uint64_t bytes) const { return walker_over(compiled, displacement, skip, bytes); }
  Bytes bytes(std::uint64_t count) const {
    return tiled_bytes(bytes_of(pattern), compiled.extent(), displacement, skip, count);
  }

  Pattern pattern;
  Compiled compiled;
  std::int64_t displacement;
  std::uint64_t skip;
};

struct PairedBytes {
  Bytes file, memory;
};

PairedBytes zipped_in_steps(Zip zip, Random& random) {
  PairedBytes out;
  while (zip.left() > 0) {
    const std::uint64_t limit = random_limit(random);
    const std::uint64_t left = zip.left();
    if (random.one_in(2)) {
      const RunPair run = zip.next_run(limit).value();
      append_run({run.file_offset, run.size, run.file_stride, run.count}, out.file);
      append_run({run.memory_offset, run.size, run.memory_stride, run.count}, out.memory);
    } else {
      const PiecePair pair = zip.next(limit).value();
      append_piece(pair.file_offset, pair.size, out.file);
      append_piece(pair.memory_offset, pair.size, out.memory);
    }
    REQUIRE(zip.left() < left);
    REQUIRE(left - zip.left() <= limit);
    REQUIRE(out.file.size() == out.memory.size());
  }
  REQUIRE_FALSE(zip.next().has_value());
  REQUIRE_FALSE(zip.next_run().has_value());
  return out;
}

TEST_CASE("10000 random pairs of patterns give the bytes of a plain loop") {
  for (std::uint64_t seed = 1; seed <= 10000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Side file(random), memory(random);
    const std::uint64_t bytes = random.below(2 * std::max(file.compiled.bytes(), memory.compiled.bytes()));
    const Bytes file_bytes = file.bytes(bytes), memory_bytes = memory.bytes(bytes);
    REQUIRE(walked(file.walker(bytes)) == file_bytes);
    REQUIRE(walked_in_steps(file.walker(bytes), random) == file_bytes);
    const PairedBytes pairs = zipped_in_steps({file.walker(bytes), memory.walker(bytes)}, random);
    REQUIRE(pairs.file == file_bytes);
    REQUIRE(pairs.memory == memory_bytes);
  }
}

TEST_CASE("a walk from any byte is the walk from the first without what is before") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Compiled compiled = Compiled::make(random_pattern(random)).value();
    if (compiled.bytes() > 400) continue;
    const std::uint64_t bytes = 2 * compiled.bytes() + 3;
    Walker from_first = walker_over(compiled, 7, 0, bytes);
    for (std::uint64_t skip = 0; skip < bytes; ++skip) {
      Walker dropped = from_first;
      Walker begun = walker_over(compiled, 7, skip, bytes - skip);
      while (dropped.left() > 0) REQUIRE(begun.next() == dropped.next());
      REQUIRE_FALSE(begun.next().has_value());
      from_first.next(1);
    }
  }
}

// ---- numbers that hardly fit ---- //

using Wide = __int128;

Wide bytes_of(const Level& level);
Wide bytes_of(const std::vector<Level>& levels) {
  Wide sum = 0;
  for (const Level& level : levels) sum += level.count * bytes_of(level);
  return sum;
}
Wide bytes_of(const Level& level) { return level.inner.empty() ? Wide{level.bytes} : bytes_of(level.inner); }

Wide offset_of(const std::vector<Level>& levels, Wide at) {
  for (const Level& level : levels) {
    const Wide bytes = bytes_of(level);
    if (at >= level.count * bytes) {
      at -= level.count * bytes;
      continue;
    }
    const Wide place = level.offset + at / bytes * level.stride;
    return place + (level.inner.empty() ? at % bytes : offset_of(level.inner, at % bytes));
  }
  throw std::logic_error("no such byte");
}

std::vector<Level> extreme_levels(Random& random, unsigned depth) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  static constexpr std::array<std::int64_t, 10> kOffsets = {0,        1,         -1,        kMin,       kMax,
                                                            kMax / 2, -kMax / 2, 1ll << 40, -(5 << 20), kMin / 4};
  static constexpr std::array<std::uint64_t, 8> kCounts = {1, 1, 2, 3, 7, 1ull << 20, 1ull << 40, kBytesMax};
  std::vector<Level> levels(1 + random.below(3));
  for (Level& level : levels) {
    level.offset = kOffsets[random.below(kOffsets.size())];
    level.count = kCounts[random.below(kCounts.size())];
    level.stride = random.one_in(2) ? 0 : kOffsets[random.below(kOffsets.size())];
    if (depth > 1 && random.one_in(2))
      level.inner = extreme_levels(random, depth - 1);
    else
      level.bytes = kCounts[random.below(kCounts.size())];
  }
  return levels;
}

TEST_CASE("patterns with extreme numbers are refused, or walked as arithmetic without limits says") {
  int walks = 0;
  for (std::uint64_t seed = 1; seed <= 100000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Pattern pattern{extreme_levels(random, 3), {}};
    if (random.one_in(2)) pattern.extent = extreme_levels(random, 1)[0].offset;
    const auto compiled = Compiled::make(pattern);
    if (!compiled) continue;
    const std::uint64_t skip = random.one_in(2) ? random.below(compiled->bytes()) : random.below(kBytesMax);
    auto walker = Walker::make(*compiled, 0, skip, 1 + random.below(kBytesMax - skip));
    if (!walker) continue;
    ++walks;
    Wide at = skip;
    for (int i = 0; i < 5 && walker->left() > 0; ++i) {
      const Run run = walker->next_run((1 + random.below(30)) << random.below(57)).value();
      const auto check_byte = [&](std::uint64_t index, std::uint64_t byte) {
        const Wide offset = Wide{run.offset} + Wide{index} * run.stride + byte;
        const Wide place = at + Wide{index} * run.size + byte, bytes = bytes_of(pattern.levels);
        const bool is_right = offset == place / bytes * compiled->extent() + offset_of(pattern.levels, place % bytes);
        REQUIRE(is_right);
      };
      check_byte(0, 0);
      check_byte(run.count - 1, run.size - 1);
      check_byte(random.below(run.count), random.below(run.size));
      at += Wide{run.count} * run.size;
    }
  }
  CHECK(walks > 1000);
}

// ---- what is regular ---- //

std::vector<Run> runs_of(const Pattern& pattern, std::uint64_t bytes) {
  const Compiled compiled = Compiled::make(pattern).value();
  Walker walker = walker_over(compiled, 0, 0, bytes);
  std::vector<Run> out;
  while (const auto run = walker.next_run()) out.push_back(*run);
  return out;
}

TEST_CASE("repetitions that touch are one piece, in one level, in several, and in tiles") {
  CHECK(runs_of(simple_strided(5, 64, 64, 1000), 64000) == std::vector<Run>{{5, 64000, 0, 1}});
  const std::array<Stride, 3> strides = {{{4, 10}, {40, 5}, {200, 3}}};
  CHECK(runs_of(nested_strided(0, 4, strides).value(), 600) == std::vector<Run>{{0, 600, 0, 1}});
  CHECK(runs_of(range(8, 16), 160) == std::vector<Run>{{8, 160, 0, 1}});
  const std::array<Piece, 3> touching = {{{0, 3}, {3, 4}, {7, 1}}};
  CHECK(runs_of({{{10, 3, 20, 0, list(touching).levels}}, {}}, 24) == std::vector<Run>{{10, 8, 20, 3}});
}

TEST_CASE("what has one distance is one run, over levels and over tiles") {
  CHECK(runs_of(simple_strided(0, 64, 128, 1000000), 64000000) == std::vector<Run>{{0, 64, 128, 1000000}});
  CHECK(runs_of(partition(10, 5, 50), 5000000) == std::vector<Run>{{10, 5, 50, 1000000}});
  const std::array<Stride, 2> strides = {{{-10, 4}, {-40, 6}}};
  CHECK(runs_of(nested_strided(0, 4, strides).value(), 96) == std::vector<Run>{{0, 4, -10, 24}});
  CHECK(runs_of({simple_strided(0, 1, 4, 5).levels, 20}, 500) == std::vector<Run>{{0, 1, 4, 500}});
}

TEST_CASE("a run ends where its limit, the request or a piece that was begun says") {
  const Compiled compiled = Compiled::make(simple_strided(0, 10, 100, 5)).value();
  Walker walker = walker_over(compiled, 0, 3, 40);
  CHECK(walker.next_run() == Run{3, 7, 0, 1});
  CHECK(walker.next_run(29) == Run{100, 10, 100, 2});
  CHECK(walker.next_run(9) == Run{300, 9, 0, 1});
  CHECK(walker.next_run() == Run{309, 1, 0, 1});
  CHECK(walker.next_run() == Run{400, 3, 0, 1});
  CHECK_FALSE(walker.next_run().has_value());
}

TEST_CASE("a request without bytes ends at once, whatever it skips") {
  const Compiled compiled = Compiled::make(simple_strided(0, 10, 100, 5)).value();
  Walker walker = walker_over(compiled, 0, 12, 0);
  CHECK(walker.piece_bytes() == 0);
  CHECK_FALSE(walker.next().has_value());
  CHECK_FALSE(walker.next_run().has_value());
}

TEST_CASE("a gather into contiguous memory is one run on both sides") {
  const Compiled file = Compiled::make(simple_strided(7, 64, 1000, 1000000)).value();
  const Compiled memory = Compiled::make(range(0, 64000000)).value();
  Zip zip(walker_over(file, 0, 0, 64000000), walker_over(memory, 0, 0, 64000000));
  const RunPair run = zip.next_run().value();
  CHECK(run.file_offset == 7);
  CHECK(run.memory_offset == 0);
  CHECK(run.size == 64);
  CHECK(run.file_stride == 1000);
  CHECK(run.memory_stride == 64);
  CHECK(run.count == 1000000);
  CHECK(zip.left() == 0);
}

// Pieces in any order; every fifth is empty, and some touch.
std::vector<Level> random_list(Random& random, std::size_t pieces) {
  std::vector<Level> list(pieces);
  std::int64_t at = 0;
  for (Level& piece : list) {
    piece.bytes = random.one_in(5) ? 0 : 1 + random.below(4);
    piece.offset = random.one_in(3) ? at : random.between(-100, 10000);
    at = piece.offset + static_cast<std::int64_t>(piece.bytes);
  }
  return list;
}

TEST_CASE("a long list is walked from any byte on, alone, repeated, and beside other levels") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Pattern pattern{random_list(random, kListPiecesMin + random.below(3000)), {}};
    if (random.one_in(2)) pattern = {{{random.between(-9, 9), 1 + random.below(3), 7, 0, pattern.levels}}, 12345};
    if (random.one_in(2)) pattern.levels.push_back({3, 4, 5, 2, {}});
    if (random.one_in(2)) pattern.levels.insert(pattern.levels.begin(), {-3, 4, -5, 2, {}});
    const Compiled compiled = Compiled::make(pattern).value();
    const Bytes bytes = bytes_of(pattern);
    const auto [lowest, highest] = std::minmax_element(bytes.begin(), bytes.end());
    REQUIRE(compiled.bytes() == bytes.size());
    REQUIRE(compiled.bounds().lowest == *lowest);
    REQUIRE(compiled.bounds().highest == *highest + 1);
    for (unsigned i = 0; i < 20; ++i) {
      const std::uint64_t skip = random.below(2 * bytes.size()), n = random.below(2 * bytes.size());
      const Walker walker = walker_over(compiled, 100, skip, n);
      REQUIRE(walked(walker) == tiled_bytes(bytes, compiled.extent(), 100, skip, n));
    }
  }
}

TEST_CASE("a list whose pieces rise, and only such a list, rises") {
  Pattern pattern;
  for (std::int64_t i = 0; i < 5000; ++i) pattern.levels.push_back({i * 8, 1, 0, 8, {}});
  CHECK(Compiled::make(pattern).value().is_rising());
  std::swap(pattern.levels[4000], pattern.levels[4001]);
  CHECK_FALSE(Compiled::make(pattern).value().is_rising());
}

TEST_CASE("a list of which one piece cannot be is refused") {
  Pattern pattern;
  for (std::int64_t i = 0; i < 5000; ++i) pattern.levels.push_back({i * 8, 1, 0, 8, {}});
  pattern.levels[4999].offset = INT64_MAX - 3;
  CHECK(validate(pattern).error().code == Code::kTooLarge);
  pattern.levels[4999] = {0, 1, 0, kBytesMax, {}};
  CHECK(validate(pattern).error().code == Code::kTooLarge);
  for (Level& level : pattern.levels) level.bytes = 0;
  CHECK(validate(pattern).error().code == Code::kInvalid);
}

TEST_CASE("a list is walked where it is, not copied") {
  Pattern pattern{std::vector<Level>(1000000), {}};
  for (Level& level : pattern.levels) level.bytes = 1;
  const Compiled compiled = Compiled::make(pattern).value();
  pattern.levels[777777].offset = 5;
  Walker walker = walker_over(compiled, 0, 777777, 1);
  CHECK(walker.next()->offset == 5);
}

// Not run by itself: what it prints depends on the machine.
TEST_CASE("a piece of a simple-strided pattern takes less than 5 ns", "[.speed]") {
  constexpr std::uint64_t kPieces = 100000000;
  const Compiled compiled = Compiled::make(simple_strided(0, 64, 1000, kPieces)).value();
  Walker walker = walker_over(compiled, 0, 0, compiled.bytes());
  std::uint64_t sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (const auto piece = walker.next()) sum += static_cast<std::uint64_t>(piece->offset);
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  CHECK(sum == kPieces / 2 * (kPieces - 1) * 1000);
  WARN(time.count() / kPieces << " ns a piece");
  CHECK(time.count() < 5.0 * kPieces);
}

}  // namespace
}  // namespace pif::patterns
