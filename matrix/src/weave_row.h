// Weaving of a row for any way to spread bits; to be included by one file per instruction set, under the rules of
// network.h.
#pragma once

#include <cstring>

#include "weave_plan.h"

namespace pif::matrix {
namespace {

// The field's bits, others above them.
template <bool kMsb>
[[gnu::always_inline]] inline std::uint64_t bits_of(const Field& field, const std::byte* part) {
  std::uint64_t word;
  std::memcpy(&word, part + field.offset, sizeof word);
  if constexpr (kMsb) return __builtin_bswap64(word) << field.within >> (64 - field.bits);
  return word >> field.within;
}

template <bool kMsb, typename Spread>
[[gnu::always_inline]] inline void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words,
                                             std::byte* out, const Spread& spread) {
  std::uint32_t field = 0;
  for (std::uint64_t word = 0, in_pattern = 0; word < words; ++word, out += sizeof(std::uint64_t)) {
    std::uint64_t sum = 0;
    for (const std::uint32_t end = plan.field_ends[in_pattern]; field < end; ++field) {
      const Field& one = plan.fields[field];
      sum |= spread(bits_of<kMsb>(one, at[one.part]), one.places, field);
    }
    if constexpr (kMsb) sum = __builtin_bswap64(sum);
    std::memcpy(out, &sum, sizeof sum);
    if (++in_pattern < plan.words) continue;
    in_pattern = field = 0;
    for (std::uint64_t part = 0; part < plan.parts; ++part) at[part] += plan.part_bytes[part];
  }
}

// The bytes of a part that go to one word, as a number.
template <bool kMsb, typename Number>
[[gnu::always_inline]] inline std::uint64_t number_at(const std::byte* part) {
  Number number;
  std::memcpy(&number, part, sizeof number);
  if constexpr (kMsb) return __builtin_bswap64(number) >> (64 - 8 * sizeof number);
  return number;
}

// Where is_even: without looking at the plan again for every word.
template <bool kMsb, unsigned kParts, typename Number, typename Spread>
[[gnu::always_inline]] inline void weave_even(const WeavePlan& plan, const std::byte** at, std::uint64_t words,
                                              std::byte* out, const Spread& spread) {
  const std::byte* parts[kParts];
  std::uint64_t places[kParts];
  for (unsigned i = 0; i < kParts; ++i) {
    parts[i] = at[plan.fields[i].part];
    places[i] = plan.fields[i].places;
  }
  for (std::uint64_t word = 0; word < words; ++word, out += sizeof(std::uint64_t)) {
    std::uint64_t sum = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < kParts; ++i)
      sum |= spread(number_at<kMsb, Number>(parts[i] + word * sizeof(Number)), places[i], i);
    if constexpr (kMsb) sum = __builtin_bswap64(sum);
    std::memcpy(out, &sum, sizeof sum);
  }
}

template <bool kMsb, typename Spread>
[[gnu::always_inline]] inline void weave_any(const WeavePlan& plan, const std::byte** at, std::uint64_t words,
                                             std::byte* out, const Spread& spread) {
  if (!plan.is_even) return weave_row<kMsb>(plan, at, words, out, spread);
  if (plan.parts == 2) return weave_even<kMsb, 2, std::uint32_t>(plan, at, words, out, spread);
  if (plan.parts == 4) return weave_even<kMsb, 4, std::uint16_t>(plan, at, words, out, spread);
  weave_even<kMsb, 8, std::uint8_t>(plan, at, words, out, spread);
}

template <typename Spread>
[[gnu::always_inline]] inline void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words,
                                             std::byte* out, const Spread& spread) {
  if (plan.msb) {
    weave_any<true>(plan, at, words, out, spread);
  } else {
    weave_any<false>(plan, at, words, out, spread);
  }
}

}  // namespace
}  // namespace pif::matrix
