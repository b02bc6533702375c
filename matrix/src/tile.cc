// The transposing network, compiled once for each of Highway's instruction sets (targets.h).
#include "targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "tile.h"

HWY_BEFORE_NAMESPACE();
namespace pif::matrix {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// At most a line of words.
using Words = hn::CappedTag<std::uint64_t, kTileRowBytes / 8>;
using Vector = hn::Vec<Words>;
constexpr Words kWords;
constexpr unsigned kLanes = hn::MaxLanes(kWords);
constexpr unsigned kLineWords = kTileRowBytes / 8;
using Row = std::uint64_t[kLanes];  // a vector in memory

// Words whose elements have an index without the bit `step`: all of them.
constexpr std::uint64_t low_elements(unsigned bits, unsigned step) {
  std::uint64_t mask = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((bit / bits & step) == 0) mask |= std::uint64_t{1} << bit;
  }
  return mask;
}

HWY_INLINE Vector load(const std::byte* from) {
  return hn::LoadU(kWords, reinterpret_cast<const std::uint64_t*>(from));
}

// `a` and `b` are rows i and i + step of a block: the upper right quarter of each square of 2 * step elements changes
// places with the lower left one. Where an instruction takes a choice of bits from two vectors, two choices are the
// least there is to do; elsewhere only the difference is moved.
template <unsigned kBits, unsigned kStep>
HWY_INLINE void exchange(Vector& a, Vector& b) {
  const Vector low = hn::Set(kWords, low_elements(kBits, kStep));
  constexpr unsigned kShift = kBits * kStep;
#if HWY_CAP_GE512
  const Vector upper = hn::IfVecThenElse(low, a, hn::ShiftLeft<kShift>(b));
  b = hn::IfVecThenElse(low, hn::ShiftRight<kShift>(a), b);
  a = upper;
#else
  const Vector difference = hn::And(hn::Xor(hn::ShiftRight<kShift>(a), b), low);
  b = hn::Xor(b, difference);
  a = hn::Xor(a, hn::ShiftLeft<kShift>(difference));
#endif
}

// kCount steps, from kStep down by halves, on 2 ^ kCount rows at a time, which stay in registers.
template <unsigned kBits, unsigned kStep, unsigned kCount>
HWY_INLINE void pass(Row* rows) {
  constexpr unsigned kRows = 64 / kBits, kRadix = 1u << kCount, kNear = kStep >> (kCount - 1);
  for (unsigned first = 0; first < kRows; ++first) {
    if ((first & (kRadix - 1) * kNear) != 0) continue;
    Vector v[kRadix];
#pragma GCC unroll 8
    for (unsigned i = 0; i < kRadix; ++i) v[i] = hn::Load(kWords, rows[first + i * kNear]);
#pragma GCC unroll 8
    for (unsigned i = 0; i < kRadix / 2; ++i) exchange<kBits, kStep>(v[i], v[i + kRadix / 2]);
    if constexpr (kCount > 1) {
#pragma GCC unroll 8
      for (unsigned i = 0; i < kRadix; ++i)
        if ((i & kRadix / 4) == 0) exchange<kBits, kStep / 2>(v[i], v[i + kRadix / 4]);
    }
    if constexpr (kCount > 2) {
#pragma GCC unroll 8
      for (unsigned i = 0; i < kRadix; i += 2) exchange<kBits, kStep / 4>(v[i], v[i + 1]);
    }
#pragma GCC unroll 8
    for (unsigned i = 0; i < kRadix; ++i) hn::Store(v[i], kWords, rows[first + i * kNear]);
  }
}

// All steps from kStep down to 1.
template <unsigned kBits, unsigned kStep>
HWY_INLINE void all_passes(Row* rows) {
  if constexpr (kStep >= 4) {
    pass<kBits, kStep, 3>(rows);
    all_passes<kBits, kStep / 8>(rows);
  } else if constexpr (kStep == 2) {
    pass<kBits, kStep, 2>(rows);
  } else if constexpr (kStep == 1) {
    pass<kBits, kStep, 1>(rows);
  }
}

#if HWY_TARGET == HWY_SCALAR
void transpose_words(Vector*) {}  // one word is its own transpose
#else
// Words of two vectors change places as elements do in exchange().
template <unsigned kStep>
HWY_INLINE void exchange_words(Vector& a, Vector& b) {
  Vector upper, lower;
  if constexpr (kStep == 1) {
    upper = hn::InterleaveLower(kWords, a, b);
    lower = hn::InterleaveUpper(kWords, a, b);
  } else if constexpr (kStep == kLanes / 2) {
    upper = hn::ConcatLowerLower(kWords, b, a);
    lower = hn::ConcatUpperUpper(kWords, b, a);
  } else {
    static_assert(kStep == 2 && kLanes == 8);
    upper = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
    lower = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
  }
  a = upper;
  b = lower;
}

template <unsigned kStep = kLanes / 2>
HWY_INLINE void transpose_words(Vector* v) {
#pragma GCC unroll 8
  for (unsigned i = 0; i < kLanes; ++i)
    if ((i & kStep) == 0) exchange_words<kStep>(v[i], v[i + kStep]);
  if constexpr (kStep > 1) transpose_words<kStep / 2>(v);
}
#endif

// kLanes blocks to the right of each other, transposed each. The next tile is asked for meanwhile.
template <unsigned kBits>
HWY_INLINE void transpose_blocks(const std::byte* in, const Tile& tile, Row* rows) {
  constexpr unsigned kRows = 64 / kBits;
  for (unsigned r = 0; r < kRows; ++r) {
    hn::Store(load(in + r * tile.in.pitch), kWords, rows[r ^ tile.flip]);
    __builtin_prefetch(in + r * tile.in.pitch + tile.to_next);
  }
  all_passes<kBits, kRows / 2>(rows);
}

// One word of each block is row c of its transpose: eight blocks below each other give the line that begins at `to` in
// each of kLanes rows.
template <unsigned kRows>
HWY_INLINE void store_lines(const Row (*rows)[kRows], unsigned c, const Tile& tile, std::byte* const* to) {
  constexpr unsigned kParts = kLineWords / kLanes;
  Vector v[kParts][kLanes];
#pragma GCC unroll 4
  for (unsigned part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
    for (unsigned i = 0; i < kLanes; ++i) v[part][i] = hn::Load(kWords, rows[part * kLanes + i][c]);
    transpose_words(v[part]);
  }
  // The parts of a line one after the other: one that is not whole soon goes past the cache in pieces.
#pragma GCC unroll 8
  for (unsigned i = 0; i < kLanes; ++i) {
    std::byte* const at = to[i * kRows] + tile.out_offset;
#pragma GCC unroll 4
    for (unsigned part = 0; part < kParts; ++part) {
      auto* const to_words = reinterpret_cast<std::uint64_t*>(at) + part * kLanes;
      if (tile.past_cache) {
        hn::Stream(v[part][i], kWords, to_words);  // whole lines, not read soon: they need not be fetched first
      } else {
        hn::StoreU(v[part][i], kWords, to_words);
      }
    }
  }
}

// As many lines as store_lines() writes.
HWY_INLINE void fetch_lines(Fetch& fetch) {
#pragma GCC unroll 8
  for (unsigned i = 0; i < kLanes; ++i) {
    const std::byte* const from = fetch.from + fetch.tile * kTileRowBytes;
    __builtin_prefetch(from + kRowsAhead * fetch.pitch, 0, 2);
    std::byte* const to = fetch.to + (std::size_t{fetch.tile} * fetch.height + fetch.row) * kTileRowBytes;
    for (unsigned word = 0; word < kLineWords; word += kLanes)
      hn::StoreU(load(from + word * 8), kWords, reinterpret_cast<std::uint64_t*>(to) + word);
    if (++fetch.tile < fetch.across) continue;
    fetch.tile = 0;
    fetch.from += fetch.pitch;
    ++fetch.row;
  }
}

// kLanes blocks side by side, from word `right` of the tile's rows on, by all eight below each other.
template <unsigned kBits>
void transpose_strip(const Tile& tile, unsigned right) {
  constexpr unsigned kRows = 64 / kBits;
  HWY_ALIGN Row rows[kLineWords][kRows];
  const std::byte* const in = tile.in.base + right * 8;
  for (unsigned block = 0; block < kLineWords; ++block) {
    if (block < tile.blocks) {
      transpose_blocks<kBits>(in + block * kRows * tile.in.pitch, tile, rows[block]);
    } else {
      std::memset(rows[block], 0, sizeof rows[block]);
    }
  }
  for (unsigned c = 0; c < kRows; ++c) {
    store_lines<kRows>(rows, c ^ tile.flip, tile, tile.out + right * kRows + c);
    if (tile.fetch != nullptr) fetch_lines(*tile.fetch);
  }
}

template <unsigned kBits>
void transpose_strips(const Tile& tile) {
  for (unsigned right = 0; right < kLineWords; right += kLanes) transpose_strip<kBits>(tile, right);
}

}  // namespace

void transpose_tile(const Tile& tile) {
  switch (tile.bits) {
    case 1: return transpose_strips<1>(tile);
    case 2: return transpose_strips<2>(tile);
    case 4: return transpose_strips<4>(tile);
    case 8: return transpose_strips<8>(tile);
    case 16: return transpose_strips<16>(tile);
    case 32: return transpose_strips<32>(tile);
    default: return transpose_strips<64>(tile);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pif::matrix
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pif::matrix {

HWY_EXPORT(transpose_tile);

void transpose_tile(const Tile& tile) { HWY_DYNAMIC_DISPATCH(transpose_tile)(tile); }

}  // namespace pif::matrix
#endif
