// The transposing network for any width of vector registers, to be included by one file per instruction set.
// All of it is in an unnamed namespace and uses nothing of the library that could be emitted out of line: a function compiled
// for AVX-512 must never be linked where another file wants its own.
#pragma once

#include <cstring>

#include "tile.h"

namespace pif::matrix {
namespace {

constexpr unsigned kLineWords = kTileRowBytes / 8;

template <unsigned kLanes>
struct VectorOf {
  typedef std::uint64_t Type __attribute__((vector_size(8 * kLanes)));
};

// Words whose elements have an index without the bit `step`: all of them.
constexpr std::uint64_t low_elements(unsigned bits, unsigned step) {
  std::uint64_t mask = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((bit / bits & step) == 0) mask |= std::uint64_t{1} << bit;
  }
  return mask;
}

// `a` and `b` are rows i and i + step of a block: the upper right quarter of each square of 2 * step elements changes places with
// the lower left one.
template <unsigned kBits, unsigned kStep, typename Vector>
[[gnu::always_inline]] inline void exchange(Vector& a, Vector& b) {
  constexpr std::uint64_t kLow = low_elements(kBits, kStep);
  constexpr unsigned kShift = kBits * kStep;
  const Vector upper = (a & kLow) | (b << kShift & ~kLow);
  b = (a >> kShift & kLow) | (b & ~kLow);
  a = upper;
}

// kCount steps, from kStep down by halves, on 2 ^ kCount rows at a time, which stay in registers.
template <unsigned kBits, unsigned kStep, unsigned kCount, typename Vector>
[[gnu::always_inline]] inline void pass(Vector* rows) {
  constexpr unsigned kRows = 64 / kBits, kRadix = 1u << kCount, kNear = kStep >> (kCount - 1);
  for (unsigned first = 0; first < kRows; ++first) {
    if ((first & (kRadix - 1) * kNear) != 0) continue;
    Vector v[kRadix];
#pragma GCC unroll 8
    for (unsigned i = 0; i < kRadix; ++i) v[i] = rows[first + i * kNear];
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
    for (unsigned i = 0; i < kRadix; ++i) rows[first + i * kNear] = v[i];
  }
}

// All steps from kStep down to 1.
template <unsigned kBits, unsigned kStep, typename Vector>
[[gnu::always_inline]] inline void all_passes(Vector* rows) {
  if constexpr (kStep >= 4) {
    pass<kBits, kStep, 3>(rows);
    all_passes<kBits, kStep / 8>(rows);
  } else if constexpr (kStep == 2) {
    pass<kBits, kStep, 2>(rows);
  } else if constexpr (kStep == 1) {
    pass<kBits, kStep, 1>(rows);
  }
}

// Words of two vectors change places as elements do in exchange().
template <unsigned kStep, typename Vector>
[[gnu::always_inline]] inline void exchange_words(Vector& a, Vector& b) {
  constexpr unsigned kLanes = sizeof(Vector) / 8;
  Vector upper, lower;
  if constexpr (kLanes == 2) {
    upper = __builtin_shufflevector(a, b, 0, 2);
    lower = __builtin_shufflevector(a, b, 1, 3);
  } else if constexpr (kLanes == 4) {
    upper = kStep == 2 ? __builtin_shufflevector(a, b, 0, 1, 4, 5) : __builtin_shufflevector(a, b, 0, 4, 2, 6);
    lower = kStep == 2 ? __builtin_shufflevector(a, b, 2, 3, 6, 7) : __builtin_shufflevector(a, b, 1, 5, 3, 7);
  } else {
    upper = kStep == 4   ? __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
            : kStep == 2 ? __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
                         : __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    lower = kStep == 4   ? __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
            : kStep == 2 ? __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
                         : __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
  a = upper;
  b = lower;
}

template <unsigned kStep, typename Vector>
[[gnu::always_inline]] inline void transpose_words(Vector* v) {
#pragma GCC unroll 8
  for (unsigned i = 0; i < sizeof(Vector) / 8; ++i)
    if ((i & kStep) == 0) exchange_words<kStep>(v[i], v[i + kStep]);
  if constexpr (kStep > 1) transpose_words<kStep / 2>(v);
}

// kLanes blocks to the right of each other, transposed each. The tile to the right of this one, the next, is fetched meanwhile.
template <unsigned kBits, typename Vector>
[[gnu::always_inline]] inline void transpose_blocks(const std::byte* in, std::size_t pitch, unsigned flip, Vector* rows) {
  constexpr unsigned kRows = 64 / kBits;
  for (unsigned r = 0; r < kRows; ++r) {
    std::memcpy(&rows[r ^ flip], in + r * pitch, sizeof(Vector));
    __builtin_prefetch(in + r * pitch + kTileRowBytes);
  }
  all_passes<kBits, kRows / 2>(rows);
}

// Part of a line that is written whole and not read soon: it need not be fetched first. Without such an instruction it is written
// like any other.
template <typename Vector>
[[gnu::always_inline]] inline void store_past_cache(std::byte* to, const Vector& v) {
#if defined(__AVX512F__)
  typedef long long Part __attribute__((vector_size(64)));
  __builtin_ia32_movntdq512(reinterpret_cast<Part*>(to), reinterpret_cast<const Part&>(v));
#elif defined(__AVX2__)
  typedef long long Part __attribute__((vector_size(32)));
  __builtin_ia32_movntdq256(reinterpret_cast<Part*>(to), reinterpret_cast<const Part&>(v));
#elif defined(__SSE2__)
  typedef long long Part __attribute__((vector_size(16)));
  __builtin_ia32_movntdq(reinterpret_cast<Part*>(to), reinterpret_cast<const Part&>(v));
#else
  std::memcpy(to, &v, sizeof v);
#endif
}

// One word of each block is row c of its transpose: eight blocks below each other give the line that begins at `to` in each of
// kLanes rows.
template <unsigned kLanes, unsigned kRows, typename Vector>
[[gnu::always_inline]] inline void store_lines(const Vector (*rows)[kRows], unsigned c, const Tile& tile, std::byte* const* to) {
#pragma GCC unroll 4
  for (unsigned down = 0; down < kLineWords; down += kLanes) {
    Vector v[kLanes];
#pragma GCC unroll 8
    for (unsigned i = 0; i < kLanes; ++i) v[i] = rows[down + i][c];
    transpose_words<kLanes / 2>(v);
#pragma GCC unroll 8
    for (unsigned i = 0; i < kLanes; ++i) {
      std::byte* const at = to[i * kRows] + tile.out_offset + down * 8;
      if (tile.past_cache) {
        store_past_cache(at, v[i]);
      } else {
        std::memcpy(at, &v[i], sizeof(Vector));
      }
    }
  }
}

// kLanes blocks side by side, from word `right` of the tile's rows on, by all eight below each other.
template <unsigned kBits, unsigned kLanes>
void transpose_strip(const Tile& tile, unsigned right) {
  using Vector = typename VectorOf<kLanes>::Type;
  constexpr unsigned kRows = 64 / kBits;
  Vector rows[kLineWords][kRows];
  const std::byte* const in = tile.in.base + right * 8;
  for (unsigned block = 0; block < kLineWords; ++block) {
    if (block < tile.blocks) {
      transpose_blocks<kBits>(in + block * kRows * tile.in.pitch, tile.in.pitch, tile.flip, rows[block]);
    } else {
      std::memset(rows[block], 0, sizeof rows[block]);
    }
  }
  for (unsigned c = 0; c < kRows; ++c)
    store_lines<kLanes, kRows>(rows, c ^ tile.flip, tile, tile.out + right * kRows + c);
}

template <unsigned kBits, unsigned kLanes>
void transpose_strips(const Tile& tile) {
  for (unsigned right = 0; right < kLineWords; right += kLanes) transpose_strip<kBits, kLanes>(tile, right);
}

template <unsigned kLanes>
void transpose_tile(const Tile& tile) {
  switch (tile.bits) {
    case 1: return transpose_strips<1, kLanes>(tile);
    case 2: return transpose_strips<2, kLanes>(tile);
    case 4: return transpose_strips<4, kLanes>(tile);
    case 8: return transpose_strips<8, kLanes>(tile);
    case 16: return transpose_strips<16, kLanes>(tile);
    case 32: return transpose_strips<32, kLanes>(tile);
    default: return transpose_strips<64, kLanes>(tile);
  }
}

}  // namespace
}  // namespace pif::matrix
