// Rows from parts against a loop over bits, for every width, number of parts and pattern.
#include "pif/matrix/weave.h"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "matrix/bits.h"
#include "pif/matrix/instructions.h"

namespace pif::matrix {
namespace {

constexpr std::uint64_t kRows = 3;

// Rows of random parts, woven; and what the bit loop makes of them.
struct Case {
  Element element;
  std::uint64_t elements;
  std::uint32_t parts;
  std::uint64_t period;
  Weave::PartOf part_of;

  bool is_right(std::mt19937_64& random) const {
    const Weave weave(element, elements, parts, period, part_of);
    const std::size_t pitch = element.bytes_of(elements) + random() % 9;
    const Bytes memory = random_bytes(parts * kRows * pitch + 8, random);
    std::vector<const std::byte*> begins;
    for (std::uint32_t part = 0; part < parts; ++part) begins.push_back(memory.data() + part * kRows * pitch);
    Bytes out(kRows * weave.row_room(), std::byte{0xA5}), expected(out.size());
    weave.weave(begins, pitch, kRows, {out.data(), weave.row_room()});
    for (std::uint64_t row = 0; row < kRows; ++row)
      put_row(begins, row * pitch, expected.data() + row * weave.row_room());
    return out == expected;
  }

  void put_row(const std::vector<const std::byte*>& begins, std::size_t offset, std::byte* to) const {
    std::vector<std::uint64_t> taken(parts);
    for (std::uint64_t j = 0; j < elements; ++j) {
      const std::uint32_t part = part_of(j);
      copy_element(begins[part] + offset, taken[part]++, to, j, element);
    }
  }
};

void check(const Case& one, std::mt19937_64& random) {
  INFO(one.elements << " elements of " << one.element.bits << " bits, " << one.parts << " parts, period "
                    << one.period);
  for (const InstructionSet set : instruction_sets()) {
    use_only(set);
    INFO(name_of(set));
    CHECK(one.is_right(random));
  }
}

template <typename F>
void for_each_element(const F& f) {
  for (const BitOrder order : {BitOrder::kMsb, BitOrder::kLsb})
    for (std::uint32_t bits = 1; bits <= 64; bits *= 2) f(Element{bits, order});
}

}  // namespace

TEST_CASE("parts dealt round, as many as there may be, give rows of any length") {
  std::mt19937_64 random(1);
  for_each_element([&](Element element) {
    for (std::uint32_t parts = 1; parts <= 20; ++parts)
      for (const std::uint64_t elements : {1ULL, 2ULL, 7ULL, 64ULL, 65ULL, 200ULL + random() % 900})
        check({element, elements, parts, parts,
               [parts](std::uint64_t j) { return static_cast<std::uint32_t>(j % parts); }},
              random);
  });
}

// Longer than what is woven at once in several steps; dealt from any part on, in any order.
TEST_CASE("many parts dealt round give long rows") {
  std::mt19937_64 random(4);
  for (const std::uint32_t parts : {9U, 12U, 16U, 17U, 24U, 32U, 36U, 64U, 300U}) {
    for (const Element element : {Element{1, BitOrder::kMsb}, Element{1, BitOrder::kLsb}, Element{4, BitOrder::kMsb},
                                  Element{16, BitOrder::kLsb}}) {
      std::vector<std::uint32_t> order(parts);
      std::iota(order.begin(), order.end(), 0U);
      std::shuffle(order.begin(), order.end(), random);
      const std::uint64_t bits = 140'000 + random() % 150'000;
      check({element, bits / element.bits, parts, parts, [&](std::uint64_t j) { return order[j % parts]; }}, random);
      check({element, parts - 1 + random() % 3, parts, parts, [&](std::uint64_t j) { return order[j % parts]; }},
            random);
    }
  }
}

TEST_CASE("parts in any pattern give rows") {
  std::mt19937_64 random(2);
  for_each_element([&](Element element) {
    for (int i = 0; i < 10; ++i) {
      std::vector<std::uint32_t> pattern(1 + random() % 150);
      const auto parts = static_cast<std::uint32_t>(1 + random() % 9);
      for (std::uint32_t& part : pattern) part = static_cast<std::uint32_t>(random() % parts);
      check({element, 1 + random() % 3000, parts, pattern.size(),
             [&](std::uint64_t j) { return pattern[j % pattern.size()]; }},
            random);
    }
  });
}

TEST_CASE("a word that one part gives alone is that part's") {
  std::mt19937_64 random(3);
  for_each_element([&](Element element) {
    check({element, 500, 3, 300, [](std::uint64_t j) { return static_cast<std::uint32_t>(j % 300 / 100); }}, random);
  });
}

}  // namespace pif::matrix
