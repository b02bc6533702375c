// Runs as they travel: what is encoded comes back, in few bytes, and what nobody encodes is refused.
#include <algorithm>
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include "pattern/bytes.h"
#include "pif/pattern/runs.h"

namespace pif::patterns {
namespace {

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  std::uint64_t end() const { return offset + length; }
  bool operator==(const Range&) const = default;
};
using Ranges = std::vector<Range>;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

RunDecoder decoder_of(const std::string& encoded) {
  auto decoder = RunDecoder::make(bytes_of(encoded), {});
  if (!decoder) throw std::runtime_error(decoder.error().text);
  return *decoder;
}

std::vector<ComponentRun> runs_of(const std::string& encoded) {
  std::vector<ComponentRun> out;
  RunDecoder decoder = decoder_of(encoded);
  while (const auto run = decoder.next()) out.push_back(*run);
  return out;
}

Ranges pieces_of(const std::vector<ComponentRun>& runs) {
  Ranges out;
  for (const ComponentRun& run : runs)
    for (std::uint64_t i = 0; i < run.count; ++i) out.push_back({run.offset + i * run.stride, run.length});
  return out;
}

// Those that touch as one.
Ranges joined(const Ranges& pieces) {
  Ranges out;
  for (const Range& piece : pieces) {
    if (!out.empty() && out.back().end() == piece.offset)
      out.back().length += piece.length;
    else
      out.push_back(piece);
  }
  return out;
}

std::string encoded(const Ranges& pieces) {
  RunEncoder encoder;
  for (const Range& piece : pieces) encoder.add(piece.offset, piece.length);
  return encoder.finish();
}

std::uint64_t payload_of(const Ranges& pieces) {
  std::uint64_t sum = 0;
  for (const Range& piece : pieces) sum += piece.length;
  return sum;
}

// Few lengths and gaps, so that some are alike by chance; some touch.
Ranges random_pieces(Random& random) {
  Ranges out;
  std::uint64_t at = random.below(5);
  for (std::uint64_t i = random.below(40); i > 0; --i) {
    at += random.below(4);
    out.push_back({at, 1 + random.below(3)});
    at = out.back().end();
  }
  return out;
}

std::vector<ComponentRun> random_runs(Random& random) {
  std::vector<ComponentRun> out;
  std::uint64_t at = 0;
  for (std::uint64_t i = random.below(12); i > 0; --i) {
    ComponentRun run{at + random.below(3), 1 + random.below(3), 0, 1 + random.below(5)};
    run.stride = run.length + random.below(3);
    out.push_back(run);
    at = run.end();
  }
  return out;
}

TEST_CASE("random lists come back, with pieces that touch joined") {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Ranges pieces = random_pieces(random);
    const std::string bytes = encoded(pieces);
    REQUIRE(pieces_of(runs_of(bytes)) == joined(pieces));
    const RunDecoder decoder = decoder_of(bytes);
    REQUIRE(decoder.payload() == payload_of(pieces));
    REQUIRE(decoder.pieces() == joined(pieces).size());
    REQUIRE(decoder.runs() == runs_of(bytes).size());
    REQUIRE(decoder.end() == (pieces.empty() ? 0 : pieces.back().end()));
  }
}

TEST_CASE("runs come back as their pieces do") {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto runs = random_runs(random);
    RunEncoder encoder;
    for (const ComponentRun& run : runs) encoder.add_run(run);
    const Ranges pieces = pieces_of(runs);
    REQUIRE(encoder.payload() == payload_of(pieces));
    REQUIRE(encoder.end() == (pieces.empty() ? 0 : pieces.back().end()));
    REQUIRE(pieces_of(runs_of(encoder.finish())) == joined(pieces));
  }
}

TEST_CASE("pieces at one distance are one run, whether they come one by one or at once") {
  const ComponentRun run{5, 64, 200, 100000};
  const std::string one_by_one = encoded(pieces_of({run}));
  CHECK(runs_of(one_by_one) == std::vector{run});
  CHECK(one_by_one.size() == 7);
  RunEncoder at_once;
  at_once.add_run(run);
  CHECK(at_once.finish() == one_by_one);
}

TEST_CASE("a run that goes on where the last one ended is one with it") {
  RunEncoder encoder;
  encoder.add(0, 64);
  encoder.add_run({100, 64, 100, 7});
  encoder.add_run({800, 64, 100, 2});
  encoder.add(1000, 64);
  CHECK(runs_of(encoder.finish()) == std::vector<ComponentRun>{{0, 64, 100, 11}});
}

TEST_CASE("a piece out of step does not break the run behind it") {
  CHECK(runs_of(encoded({{0, 4}, {9, 4}, {19, 4}, {29, 4}, {39, 4}})) ==
        std::vector<ComponentRun>{{0, 4, 4, 1}, {9, 4, 10, 4}});
  RunEncoder encoder;
  encoder.add(0, 4);
  encoder.add_run({9, 4, 10, 6});
  CHECK(runs_of(encoder.finish()) == std::vector<ComponentRun>{{0, 4, 4, 1}, {9, 4, 10, 6}});
}

TEST_CASE("pieces that touch are joined before they are counted as alike") {
  CHECK(runs_of(encoded({{0, 2}, {2, 2}, {10, 4}, {20, 1}, {21, 3}, {30, 4}})) ==
        std::vector<ComponentRun>{{0, 4, 10, 4}});
  RunEncoder encoder;
  encoder.add(0, 6);
  encoder.add_run({6, 4, 10, 3});
  encoder.add(30, 5);
  CHECK(runs_of(encoder.finish()) == std::vector<ComponentRun>{{0, 10, 10, 1}, {16, 4, 4, 1}, {26, 9, 9, 1}});
}

TEST_CASE("runs with no space between their pieces are one piece") {
  RunEncoder encoder;
  encoder.add_run({0, 16, 16, 1000});
  encoder.add_run({16000, 5, 5, 1});
  CHECK(runs_of(encoder.finish()) == std::vector<ComponentRun>{{0, 16005, 16005, 1}});
}

TEST_CASE("a random piece takes at most 8 bytes") {
  Random random(1);
  for (int list = 0; list < 50; ++list) {
    const std::uint64_t gap_limit = std::uint64_t{1} << (1 + random.below(34));
    const std::uint64_t length_limit = std::uint64_t{1} << (1 + random.below(14));
    Ranges pieces;
    std::uint64_t at = 0;
    for (int i = 0; i < 1000; ++i) {
      pieces.push_back({at + random.below(gap_limit), 1 + random.below(length_limit - 1)});
      at = pieces.back().end();
    }
    CHECK(encoded(pieces).size() <= 8 * pieces.size());
  }
  CHECK(encoded({{(1ull << 34) - 1, (1u << 14) - 1}}).size() == 7);
}

TEST_CASE("bytes() is a bound that an added piece raises by a known amount") {
  Random random(2);
  RunEncoder encoder;
  std::uint64_t at = 0;
  for (int i = 0; i < 20000 && encoder.bytes() + 3 * kRunBytesMax <= kRunsBytesMax; ++i) {
    const std::size_t before = encoder.bytes();
    at += random.below(1ull << random.below(48));
    if (random.one_in(4)) {
      const std::uint64_t length = 1 + random.below(1ull << random.below(20));
      encoder.add_run({at, length, length + random.below(100), 1 + random.below(5)});
      REQUIRE(encoder.bytes() <= before + 3 * kRunBytesMax);
    } else {
      encoder.add(at, 1 + random.below(4));
      REQUIRE(encoder.bytes() <= before + kRunBytesMax);
    }
    at = encoder.end();
  }
  const std::size_t bound = encoder.bytes();
  CHECK(bound > kRunsBytesMax - 4 * kRunBytesMax);
  const std::string bytes = encoder.finish();
  CHECK(bytes.size() <= bound);
  CHECK(RunDecoder::make(bytes_of(bytes), {}).has_value());
  CHECK(encoder.empty());
  CHECK(encoder.finish().empty());
}

TEST_CASE("the largest offsets and counts come back") {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 63;
  RunEncoder encoder;
  encoder.add_run({0, 1, 2, kEnd / 2});
  std::string bytes = encoder.finish();
  CHECK(bytes.size() <= kRunBytesMax);
  RunDecoder decoder = RunDecoder::make(bytes_of(bytes), {kEnd, kEnd}).value();
  CHECK(decoder.next() == ComponentRun{0, 1, 2, kEnd / 2});
  encoder.add(kEnd - 2, 1);
  bytes = encoder.finish();
  CHECK(RunDecoder::make(bytes_of(bytes), {kEnd}).value().next() == ComponentRun{kEnd - 2, 1, 1, 1});
  CHECK_FALSE(RunDecoder::make(bytes_of(bytes), {kEnd - 2}).has_value());
}

// ---- bytes of somebody else ---- //

std::string varint(std::uint64_t number) {
  std::string out;
  for (; number > 127; number /= 128) out += static_cast<char>(128 + number % 128);
  return out + static_cast<char>(number);
}
std::string single(std::uint64_t gap, std::uint64_t length) { return varint(gap * 2) + varint(length); }
std::string strided(std::uint64_t gap, std::uint64_t length, std::uint64_t space, std::uint64_t more) {
  return varint(gap * 2 + 1) + varint(length) + varint(space) + varint(more);
}

void check_refused(const std::string& bytes, const std::string& text, const RunLimits& limits = {}) {
  const auto decoder = RunDecoder::make(bytes_of(bytes), limits);
  REQUIRE_FALSE(decoder.has_value());
  CHECK(decoder.error().code == Code::kInvalid);
  CHECK_THAT(decoder.error().text, Catch::Matchers::Contains(text));
}

TEST_CASE("the bytes of a run are those that runs.h says") {
  CHECK(encoded({{3, 300}}) == single(3, 300));
  CHECK(encoded({{1, 2}, {11, 2}, {21, 2}, {50, 7}}) == strided(1, 2, 8, 1) + single(27, 7));
  CHECK(encoded({{1, 2}, {11, 2}}) == std::string("\x03\x02\x08\x00", 4));
}

TEST_CASE("no bytes are no runs") {
  CHECK(runs_of("").empty());
  CHECK(decoder_of("").end() == 0);
}

TEST_CASE("runs that touch are accepted, though no encoder makes them") {
  CHECK(runs_of(single(5, 3) + strided(0, 2, 0, 0)) == std::vector<ComponentRun>{{5, 3, 3, 1}, {8, 2, 2, 2}});
}

TEST_CASE("bytes that end inside a run are refused, wherever they are cut") {
  const std::string good = single(1000, 1000) + strided(1000, 1000, 1000, 1000);
  const std::size_t first = single(1000, 1000).size();
  CHECK(runs_of(good).size() == 2);
  for (std::size_t size = 1; size < good.size(); ++size) {
    CAPTURE(size);
    if (size == first) continue;
    check_refused(good.substr(0, size), size < first ? "run 0: the bytes end" : "run 1: the bytes end");
  }
}

TEST_CASE("a number in more bytes than it takes is refused") {
  const std::string good = single(0, 1);
  check_refused(good + std::string("\x82\x00\x01", 3), "run 1: a number in more bytes");
  check_refused(good + std::string("\x02\x81\x00", 3), "run 1: a number in more bytes");
  check_refused(std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01", 11), "run 0: a number in more bytes");
}

TEST_CASE("a number of over 64 bits is refused") {
  check_refused(std::string(9, '\xff') + "\x02\x01", "run 0: a number of over 64 bits");
  check_refused(std::string(10, '\xff') + "\x01\x01", "run 0: a number of over 64 bits");
  check_refused(std::string(100, '\x80'), "run 0: a number of over 64 bits");
  check_refused(std::string(9, '\xff') + "\x01\x01", "run 0: it reaches beyond");
}

TEST_CASE("a piece without bytes is refused") {
  check_refused(single(3, 1) + single(3, 0), "run 1: a piece without bytes");
  check_refused(strided(3, 0, 5, 5), "run 0: a piece without bytes");
}

TEST_CASE("a run that reaches beyond the end is refused, also by a number that overflows") {
  const RunLimits limits{1000};
  CHECK(RunDecoder::make(bytes_of(single(900, 100)), limits).has_value());
  check_refused(single(900, 101), "run 0: it reaches beyond byte 1000", limits);
  check_refused(single(500, 100) + single(301, 100), "run 1: it reaches beyond byte 1000", limits);
  check_refused(single(1001, 1), "run 0: it reaches", limits);
  CHECK(RunDecoder::make(bytes_of(strided(10, 90, 10, 8)), limits).has_value());
  check_refused(strided(10, 90, 10, 9), "run 0: it reaches", limits);
  check_refused(strided(11, 90, 10, 8), "run 0: it reaches", limits);
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t huge : {kAll, kAll - 1, kAll / 2, kAll / 2 + 1, kAll - 89, kAll - 90}) {
    CAPTURE(huge);
    check_refused(single(huge / 2, 5), "run 0: it reaches", limits);
    check_refused(single(5, huge), "run 0: it reaches", limits);
    check_refused(strided(10, 90, huge, 0), "run 0: it reaches", limits);
    check_refused(strided(10, 90, 10, huge), "run 0: it reaches", limits);
    check_refused(strided(10, 90, 0, huge), "run 0: it reaches", limits);
    check_refused(strided(0, 1, 0, huge), "run 0: it reaches", {std::uint64_t{1} << 62});
  }
}

TEST_CASE("more bytes or pieces than allowed are refused") {
  const std::string bytes = single(0, 10) + strided(5, 10, 5, 3) + single(5, 10);
  CHECK(RunDecoder::make(bytes_of(bytes), {1000, 70, 7}).has_value());
  check_refused(bytes, "run 2: with it the pieces have over 69 bytes", {1000, 69, 7});
  check_refused(bytes, "run 1: with it the pieces have over 59 bytes", {1000, 59, 7});
  check_refused(bytes, "run 0: with it the pieces have over 9 bytes", {1000, 9, 7});
  check_refused(bytes, "run 2: with it there are over 6 pieces", {1000, 70, 6});
  check_refused(bytes, "run 1: with it there are over 5 pieces", {1000, 70, 5});
  check_refused(bytes, "run 0: with it there are over 0 pieces", {1000, 70, 0});
}

TEST_CASE("64 KiB of runs are read, and more are refused") {
  std::string bytes;
  while (bytes.size() < kRunsBytesMax) bytes += single(1, 1);
  CHECK(runs_of(bytes).size() == kRunsBytesMax / 2);
  check_refused(bytes + single(1, 1), "65538 bytes of runs; at most 65536");
}

TEST_CASE("random bytes are refused or are disjoint and rising runs within the limits") {
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 100000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::string bytes;
    for (std::uint64_t i = random.below(20); i > 0; --i)
      bytes += static_cast<char>(random.below(random.one_in(4) ? 256 : 128));
    const RunLimits limits{1 + random.below(1ull << random.below(63)), 1 + random.below(1ull << random.below(63))};
    auto decoder = RunDecoder::make(bytes_of(bytes), limits);
    if (!decoder) continue;
    ++accepted;
    std::uint64_t end = 0, payload = 0;
    while (const auto run = decoder->next()) {
      REQUIRE(run->length > 0);
      REQUIRE(run->count > 0);
      REQUIRE(run->stride >= run->length);
      REQUIRE(run->offset >= end);
      REQUIRE(run->end() > run->offset);
      end = run->end();
      payload += run->count * run->length;
    }
    REQUIRE(end <= limits.end_max);
    REQUIRE(payload <= limits.payload_max);
    REQUIRE(payload == decoder->payload());
    REQUIRE(end == decoder->end());
  }
  CHECK(accepted > 5000);
}

}  // namespace
}  // namespace pif::patterns
