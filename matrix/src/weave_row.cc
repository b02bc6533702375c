// Weaving of a row, compiled once for each of Highway's instruction sets (targets.h).
#include "targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weave_row.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "weave_plan.h"

#undef PIF_HAS_PDEP
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define PIF_HAS_PDEP 1  // Highway's AVX2 is with BMI2
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace pif::matrix {
namespace HWY_NAMESPACE {
namespace {

// The bits of a field, brought to their places.
HWY_INLINE std::uint64_t spread(const WeavePlan& plan, std::uint64_t bits, std::uint64_t places, std::uint32_t field) {
#ifdef PIF_HAS_PDEP
  (void)plan, (void)field;
  return _pdep_u64(bits, places);
#else
  const Moves& moves = plan.moves[field];
  for (unsigned i = 0; i < 6; ++i) bits = (bits & ~moves.by[i]) | (bits << (32U >> i) & moves.by[i]);
  return bits & places;
#endif
}

// The field's bits, others above them.
template <bool kMsb>
HWY_INLINE std::uint64_t bits_of(const Field& field, const std::byte* part) {
  std::uint64_t word;
  std::memcpy(&word, part + field.offset, sizeof word);
  if constexpr (kMsb) return __builtin_bswap64(word) << field.within >> (64 - field.bits);
  return word >> field.within;
}

template <bool kMsb>
HWY_INLINE void weave_by_plan(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
  std::uint32_t field = 0;
  for (std::uint64_t word = 0, in_pattern = 0; word < words; ++word, out += sizeof(std::uint64_t)) {
    std::uint64_t sum = 0;
    for (const std::uint32_t end = plan.field_ends[in_pattern]; field < end; ++field) {
      const Field& one = plan.fields[field];
      sum |= spread(plan, bits_of<kMsb>(one, at[one.part]), one.places, field);
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
HWY_INLINE std::uint64_t number_at(const std::byte* part) {
  Number number;
  std::memcpy(&number, part, sizeof number);
  if constexpr (kMsb) return __builtin_bswap64(number) >> (64 - 8 * sizeof number);
  return number;
}

// Where is_even: without looking at the plan again for every word.
template <bool kMsb, unsigned kParts, typename Number>
HWY_INLINE void weave_even(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
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
      sum |= spread(plan, number_at<kMsb, Number>(parts[i] + word * sizeof(Number)), places[i], i);
    if constexpr (kMsb) sum = __builtin_bswap64(sum);
    std::memcpy(out, &sum, sizeof sum);
  }
}

template <bool kMsb>
HWY_INLINE void weave_any(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
  if (!plan.is_even) return weave_by_plan<kMsb>(plan, at, words, out);
  if (plan.parts == 2) return weave_even<kMsb, 2, std::uint32_t>(plan, at, words, out);
  if (plan.parts == 4) return weave_even<kMsb, 4, std::uint16_t>(plan, at, words, out);
  weave_even<kMsb, 8, std::uint8_t>(plan, at, words, out);
}

}  // namespace

void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
  if (plan.msb) {
    weave_any<true>(plan, at, words, out);
  } else {
    weave_any<false>(plan, at, words, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pif::matrix
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pif::matrix {

HWY_EXPORT(weave_row);

void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(weave_row)(plan, at, words, out);
}

}  // namespace pif::matrix
#endif
