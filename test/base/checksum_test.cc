#include "pif/base/checksum.h"

#include <cstring>
#include <set>
#include <string>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace pif {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Components on disk have these sums: a change is a new format version.
TEST_CASE("the checksum of released components does not change") {
  CHECK(hash_bytes({}) == 0x2d06800538d394c2u);  // XXH3-64 of nothing, as published
  CHECK(chunk_mix(FileId(1), 0, 0) == 0x5e41ab087439611eu);
  CHECK(chunk_mix(FileId(0x1234), 1, 99) == 0x01c37eabf9e2311fu);
  CHECK(stamp_mix(0) == 0xe220a8397b1dcdafu);  // splitmix64's first number, as published
  CHECK(stamp_mix(7) == 0x63cbe1e459320dd7u);
}

TEST_CASE("a sum is rebound to another file without the bytes, as if computed there") {
  REQUIRE(rc::check([] {
    const auto text = *rc::gen::arbitrary<std::string>();
    const FileId from(*rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 48));
    const FileId to(*rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 48));
    const auto stream = *rc::gen::inRange<std::uint32_t>(0, 2);
    const auto chunk = *rc::gen::arbitrary<std::uint64_t>();
    const std::uint64_t sum = chunk_sum(from, stream, chunk, bytes_of(text));
    RC_ASSERT((sum ^ chunk_mix(from, stream, chunk) ^ chunk_mix(to, stream, chunk)) ==
              chunk_sum(to, stream, chunk, bytes_of(text)));
  }));
}

TEST_CASE("right bytes at another chunk, in another stream or in another file have another sum") {
  const auto bytes = bytes_of("0123456789abcdef");
  std::set<std::uint64_t> sums;
  unsigned count = 0;
  for (const std::uint64_t file : {1u, 2u, 3u, 256u})
    for (const std::uint32_t stream : {0u, 1u})
      for (std::uint64_t chunk = 0; chunk < 500; ++chunk, ++count)
        sums.insert(chunk_sum(FileId(file), stream, chunk, bytes));
  CHECK(sums.size() == count);
}

TEST_CASE("any flipped bit changes the sum") {
  std::string text(200, 'x');
  const std::uint64_t sum = chunk_sum(FileId(5), 0, 3, bytes_of(text));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(chunk_sum(FileId(5), 0, 3, bytes_of(text)) != sum);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace pif
