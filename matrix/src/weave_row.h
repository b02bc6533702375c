// Weaving of a row for any way to spread bits; to be included by one file per instruction set, under the rules of network.h.
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
[[gnu::always_inline]] inline void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out,
                                             const Spread& spread) {
  std::uint32_t field = 0;
  for (std::uint64_t word = 0, in_pattern = 0; word < words; ++word, out += sizeof(std::uint64_t)) {
    std::uint64_t sum = 0;
    for (const std::uint32_t end = plan.field_ends[in_pattern]; field < end; ++field) {
      const Field& one = plan.fields[field];
      sum |= spread(bits_of<kMsb>(one, at[one.part]), field);
    }
    if constexpr (kMsb) sum = __builtin_bswap64(sum);
    std::memcpy(out, &sum, sizeof sum);
    if (++in_pattern < plan.words) continue;
    in_pattern = field = 0;
    for (std::uint64_t part = 0; part < plan.parts; ++part) at[part] += plan.part_bytes[part];
  }
}

template <typename Spread>
[[gnu::always_inline]] inline void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out,
                                             const Spread& spread) {
  if (plan.msb) {
    weave_row<true>(plan, at, words, out, spread);
  } else {
    weave_row<false>(plan, at, words, out, spread);
  }
}

}  // namespace
}  // namespace pif::matrix
