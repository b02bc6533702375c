// The loops are compiled for each of Highway's instruction sets, and one is chosen at run time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "text_counts.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "text_counts.h"

#ifndef PIF_TEXT_COUNTS_KERNEL
#define PIF_TEXT_COUNTS_KERNEL
namespace pif::counts {

inline constexpr std::size_t kBlock = 64;  // bytes that are looked at together: a bit for each

// Of a block: which bytes are of which kind.
struct Kinds {
  std::uint64_t line_ends = 0;   // '\n'
  std::uint64_t spaces = 0;      // all white space
  std::uint64_t words = 0;       // printable, and no space
  std::uint64_t line_stops = 0;  // of -L: '\n', '\r', '\f'
  std::uint64_t tabs = 0;
  std::uint64_t blanks = 0;  // ' '
};

// What a block adds.
struct Kernel {
  static void add_words(TextCounts& counts, const Kinds& kinds) {
    counts.lines_ += static_cast<std::uint64_t>(std::popcount(kinds.line_ends));
    const std::uint64_t telling = kinds.spaces | kinds.words, others = ~telling;
    if (!counts.has_words_or_space_ && telling != 0) {
      counts.has_words_or_space_ = true;
      counts.begins_in_word_ = (kinds.words >> std::countr_zero(telling) & 1) != 0;
    }
    // Other bytes are in a word if those before them are: a carry runs through each row of them that follows a word.
    const std::uint64_t before = counts.ends_in_word_ ? 1 : 0;
    const std::uint64_t follows_word = (kinds.words << 1 | before) & others;
    const std::uint64_t inside = kinds.words | (((others + follows_word) ^ others) & others);
    counts.words_ += static_cast<std::uint64_t>(std::popcount(kinds.words & ~(inside << 1 | before)));
    counts.ends_in_word_ = inside >> (kBlock - 1) != 0;
  }

  static void add_columns(TextCounts& counts, const Kinds& kinds) {
    std::uint64_t columns = kinds.words | kinds.blanks;
    for (std::uint64_t left = kinds.line_stops | kinds.tabs; left != 0; left &= left - 1) {
      const std::uint64_t bit = left & (~left + 1), below = bit - 1;
      counts.last_.add_columns(static_cast<std::uint64_t>(std::popcount(columns & below)));
      columns &= ~below;
      if ((kinds.tabs & bit) != 0) {
        counts.last_.add_tab();
      } else {
        counts.end_line();
      }
    }
    counts.last_.add_columns(static_cast<std::uint64_t>(std::popcount(columns)));
  }
};

}  // namespace pif::counts
#endif

HWY_BEFORE_NAMESPACE();
namespace pif::counts {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::CappedTag<std::uint8_t, kBlock>;

// One vector's part of the block.
template <typename Mask>
HWY_INLINE void put(const Mask mask, std::size_t at, std::uint64_t& bits) {
  constexpr std::size_t kMaskBytes = std::max<std::size_t>(hn::MaxLanes(Bytes()) / 8, 8);
  std::array<std::uint8_t, kMaskBytes> stored{};
  hn::StoreMaskBits(Bytes(), mask, stored.data());
  std::uint64_t part = 0;
  std::memcpy(&part, stored.data(), hn::Lanes(Bytes()) / 8);
  bits |= part << at;
}

template <bool kLongest>
HWY_INLINE Kinds kinds_of(const std::uint8_t* block) {
  const Bytes d;
  Kinds kinds;
  for (std::size_t at = 0; at < kBlock; at += hn::Lanes(d)) {
    const auto bytes = hn::LoadU(d, block + at);
    const auto line_end = hn::Eq(bytes, hn::Set(d, '\n'));
    const auto blank = hn::Eq(bytes, hn::Set(d, ' '));
    put(line_end, at, kinds.line_ends);
    put(hn::Or(blank, hn::Lt(hn::Sub(bytes, hn::Set(d, '\t')), hn::Set(d, 5))), at, kinds.spaces);
    put(hn::Lt(hn::Sub(bytes, hn::Set(d, '!')), hn::Set(d, 0x7f - '!')), at, kinds.words);
    if constexpr (kLongest) {
      const auto other_stop = hn::Or(hn::Eq(bytes, hn::Set(d, '\r')), hn::Eq(bytes, hn::Set(d, '\f')));
      put(hn::Or(line_end, other_stop), at, kinds.line_stops);
      put(hn::Eq(bytes, hn::Set(d, '\t')), at, kinds.tabs);
      put(blank, at, kinds.blanks);
    }
  }
  return kinds;
}

template <bool kLongest>
HWY_INLINE void add_block(const std::uint8_t* block, TextCounts& counts) {
  const Kinds kinds = kinds_of<kLongest>(block);
  Kernel::add_words(counts, kinds);
  if constexpr (kLongest) Kernel::add_columns(counts, kinds);
}

template <bool kLongest>
HWY_INLINE void add_blocks(const std::uint8_t* bytes, std::size_t size, TextCounts& counts) {
  TextCounts now = counts;
  for (; size >= kBlock; size -= kBlock, bytes += kBlock) add_block<kLongest>(bytes, now);
  if (size > 0) {  // zeros change nothing
    std::array<std::uint8_t, kBlock> last{};
    std::memcpy(last.data(), bytes, size);
    add_block<kLongest>(last.data(), now);
  }
  counts = now;
}

}  // namespace

void count_bytes(const std::uint8_t* bytes, std::size_t size, bool longest, TextCounts& counts) {
  if (longest) return add_blocks<true>(bytes, size, counts);
  add_blocks<false>(bytes, size, counts);
}

}  // namespace HWY_NAMESPACE
}  // namespace pif::counts
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pif::counts {

HWY_EXPORT(count_bytes);

void Advance::add(const Advance& next) {
  if (has_tab) {
    after = next.from(after);
  } else {
    *this = {before + next.before, next.has_tab, next.after};
  }
}

void TextCounts::end_line() {
  if (has_line_end_) {
    longest_ = std::max(longest_, last_.from(0));
  } else {
    first_ = last_;
  }
  has_line_end_ = true;
  last_ = {};
}

void TextCounts::add(std::span<const std::byte> bytes, What what) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  HWY_DYNAMIC_DISPATCH(count_bytes)(from, bytes.size(), what == What::kWordsAndLongest, *this);
}

void TextCounts::add(const TextCounts& next) {
  lines_ += next.lines_;
  words_ += next.words_ - (ends_in_word_ && next.begins_in_word_ ? 1 : 0);
  if (!has_words_or_space_) begins_in_word_ = next.begins_in_word_;
  if (next.has_words_or_space_) ends_in_word_ = next.ends_in_word_;
  has_words_or_space_ = has_words_or_space_ || next.has_words_or_space_;
  if (!next.has_line_end_) return last_.add(next.last_);
  last_.add(next.first_);
  end_line();
  longest_ = std::max(longest_, next.longest_);
  last_ = next.last_;
}

std::uint64_t TextCounts::longest() const {
  return std::max({has_line_end_ ? first_.from(0) : 0, longest_, last_.from(0)});
}

}  // namespace pif::counts
#endif
