// Every kernel against a loop over bits: all small shapes, all alignments, every width of elements, and large random
// ones.
#include "pif/matrix/transpose.h"

#include <cstring>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "matrix/bits.h"
#include "pif/matrix/instructions.h"

namespace pif::matrix {
namespace {

constexpr std::byte kUntouched{0xA5};

// A matrix whose rows begin `offset` bytes into memory and lie `gap` bytes apart.
struct Shape {
  std::uint64_t rows = 0, columns = 0;
  Element element;
  std::size_t offset = 0, gap = 0;
};

Bytes spread(const Bytes& packed, std::uint64_t rows, std::size_t row_bytes, const Shape& shape) {
  Bytes memory(shape.offset + rows * (row_bytes + shape.gap), kUntouched);
  for (std::uint64_t r = 0; r < rows && row_bytes > 0; ++r)
    std::memcpy(memory.data() + shape.offset + r * (row_bytes + shape.gap), packed.data() + r * row_bytes, row_bytes);
  return memory;
}

// Whether the kernel makes of random bytes what the bit loop makes of them, and write nothing else. The input's padding
// is random, too.
bool is_right(const Shape& shape, std::mt19937_64& random) {
  const std::size_t in_bytes = shape.element.bytes_of(shape.columns), out_bytes = shape.element.bytes_of(shape.rows);
  const Bytes packed = random_bytes(shape.rows * in_bytes, random);
  const Bytes in = spread(packed, shape.rows, in_bytes, shape);
  const Bytes expected =
      spread(transposed(packed, shape.rows, shape.columns, shape.element), shape.columns, out_bytes, shape);
  Bytes out(expected.size(), kUntouched);
  transpose({in.data() + shape.offset, in_bytes + shape.gap}, shape.rows, shape.columns,
            {out.data() + shape.offset, out_bytes + shape.gap}, shape.element);
  return out == expected;
}

void check(const Shape& shape, std::mt19937_64& random) {
  for (const InstructionSet set : instruction_sets()) {
    use_only(set);
    INFO(name_of(set) << ": " << shape.rows << " x " << shape.columns << " elements of " << shape.element.bits
                      << " bits, " << (shape.element.order == BitOrder::kMsb ? "msb" : "lsb") << ", at " << shape.offset
                      << ", gap " << shape.gap);
    CHECK(is_right(shape, random));
  }
}

template <typename F>
void for_each_element(const F& f) {
  for (const BitOrder order : {BitOrder::kMsb, BitOrder::kLsb})
    for (std::uint32_t bits = 1; bits <= 64; bits *= 2) f(Element{bits, order});
}

}  // namespace

TEST_CASE("there is always a portable kernel; those for more are tested where the machine has them") {
  const auto sets = instruction_sets();
  REQUIRE(!sets.empty());
  std::set<std::string> names;
  for (const InstructionSet set : sets) names.insert(name_of(set));
  for (const char* name : {"SCALAR", "SSE4", "AVX2", "AVX3"})
    if (!names.contains(name)) WARN("not tested: this machine has no " << name);
}

TEST_CASE("all small shapes are transposed as the bit loop does it") {
  std::mt19937_64 random(1);
  for_each_element([&](Element element) {
    const std::uint64_t limit = element.bits == 1 ? 70 : 20;
    for (std::uint64_t rows = 0; rows <= limit; ++rows)
      for (std::uint64_t columns = 0; columns <= limit; ++columns) check({rows, columns, element, 0, 0}, random);
  });
}

TEST_CASE("rows may begin at any address and lie at any distance") {
  std::mt19937_64 random(2);
  for_each_element([&](Element element) {
    for (std::size_t offset = 0; offset < 64; ++offset)
      check({tile_elements(element) + 3, tile_elements(element) + 5, element, offset, offset % 9}, random);
  });
}

TEST_CASE("shapes of several tiles are transposed, whatever their edges") {
  std::mt19937_64 random(3);
  for_each_element([&](Element element) {
    for (int i = 0; i < 6; ++i) {
      const std::uint64_t limit = 5 * tile_elements(element) / 2;
      check({1 + random() % limit, 1 + random() % limit, element, random() % 64, random() % 64}, random);
    }
  });
}

TEST_CASE("rows go wherever they are told to, near the cache or past it, and from memory") {
  std::mt19937_64 random(5);
  for (const std::uint64_t rows : {100ULL, 9000ULL, 14'000ULL}) {
    const Shape shape{rows, 5000, {1, BitOrder::kLsb}, 0, 0};
    const std::size_t in_bytes = 625, out_bytes = shape.element.bytes_of(rows), pitch = (out_bytes + 127) / 64 * 64;
    const Bytes in = random_bytes(rows * in_bytes, random), expected = transposed(in, rows, 5000, shape.element);
    for (const InstructionSet set : instruction_sets()) {
      use_only(set);
      Bytes memory(5000 * pitch + 64);
      std::byte* const aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
      std::vector<std::byte*> begins;
      for (std::uint64_t c = 0; c < 5000; ++c) begins.push_back(aligned + (c * 7 % 5000) * pitch);
      transpose({in.data(), in_bytes}, rows, 5000, {begins, 0}, shape.element);
      bool same = true;
      for (std::uint64_t c = 0; c < 5000; ++c)
        same = same && std::memcmp(begins[c], &expected[c * out_bytes], out_bytes) == 0;
      INFO(name_of(set) << ", " << rows << " rows");
      CHECK(same);
    }
  }
}

TEST_CASE("a large matrix, transposed twice, is what it was") {
  std::mt19937_64 random(4);
  for_each_element([&](Element element) {
    const std::uint64_t rows = 9001, columns = 8209 / element.bits;
    const std::size_t in_pitch = element.bytes_of(columns), out_pitch = element.bytes_of(rows);
    const Bytes in = without_padding(random_bytes(rows * in_pitch, random), rows, columns, element);
    for (const InstructionSet set : instruction_sets()) {
      use_only(set);
      Bytes there(columns * out_pitch);
      Bytes back(in.size());
      transpose({in.data(), in_pitch}, rows, columns, {there.data(), out_pitch}, element);
      transpose({there.data(), out_pitch}, columns, rows, {back.data(), in_pitch}, element);
      INFO(name_of(set) << ", " << element.bits << " bits");
      CHECK((back == in));  // a difference is not worth printing
    }
  });
}

}  // namespace pif::matrix
