// The transposing network for any width of vector registers, to be included by one file per instruction set.
// All of it is in an unnamed namespace and uses nothing of the library that could be emitted out of line: a function
// compiled for AVX-512 must never be linked where another file wants its own.
#pragma once

#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

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

// `a` and `b` are rows i and i + step of a block: the upper right quarter of each square of 2 * step elements changes
// places with the lower left one. Where an instruction takes a choice of bits from two vectors, two choices are the
// least there is to do; elsewhere only the difference is moved.
template <unsigned kBits, unsigned kStep, typename Vector>
[[gnu::always_inline]] inline void exchange(Vector& a, Vector& b) {
  constexpr std::uint64_t kLow = low_elements(kBits, kStep);
  constexpr unsigned kShift = kBits * kStep;
  if constexpr (sizeof(Vector) == 64) {
    const Vector upper = (a & kLow) | (b << kShift & ~kLow);
    b = (a >> kShift & kLow) | (b & ~kLow);
    a = upper;
  } else {
    const Vector difference = (a >> kShift ^ b) & kLow;
    b ^= difference;
    a ^= difference << kShift;
  }
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

// kLanes blocks to the right of each other, transposed each. The next tile is asked for meanwhile.
template <unsigned kBits, typename Vector>
[[gnu::always_inline]] inline void transpose_blocks(const std::byte* in, const Tile& tile, Vector* rows) {
  constexpr unsigned kRows = 64 / kBits;
  for (unsigned r = 0; r < kRows; ++r) {
    std::memcpy(&rows[r ^ tile.flip], in + r * tile.in.pitch, sizeof(Vector));
    __builtin_prefetch(in + r * tile.in.pitch + tile.to_next);
  }
  all_passes<kBits, kRows / 2>(rows);
}

// Part of a line that is written whole and not read soon: it need not be fetched first. Without such an instruction it
// is written like any other.
template <typename Vector>
[[gnu::always_inline]] inline void store_past_cache(std::byte* to, const Vector& v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<const __m512i&>(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<const __m256i&>(v));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<const __m128i&>(v));
#else
  std::memcpy(to, &v, sizeof v);
#endif
}

// One word of each block is row c of its transpose: eight blocks below each other give the line that begins at `to` in
// each of kLanes rows.
template <unsigned kLanes, unsigned kRows, typename Vector>
[[gnu::always_inline]] inline void store_lines(const Vector (*rows)[kRows], unsigned c, const Tile& tile,
                                               std::byte* const* to) {
  constexpr unsigned kParts = kLineWords / kLanes;
  Vector v[kParts][kLanes];
#pragma GCC unroll 4
  for (unsigned part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
    for (unsigned i = 0; i < kLanes; ++i) v[part][i] = rows[part * kLanes + i][c];
    transpose_words<kLanes / 2>(v[part]);
  }
  // The parts of a line one after the other: one that is not whole soon goes past the cache in pieces.
#pragma GCC unroll 8
  for (unsigned i = 0; i < kLanes; ++i) {
    std::byte* const at = to[i * kRows] + tile.out_offset;
#pragma GCC unroll 4
    for (unsigned part = 0; part < kParts; ++part) {
      if (tile.past_cache) {
        store_past_cache(at + part * sizeof(Vector), v[part][i]);
      } else {
        std::memcpy(at + part * sizeof(Vector), &v[part][i], sizeof(Vector));
      }
    }
  }
}

// As many lines as store_lines() writes.
template <unsigned kLanes>
[[gnu::always_inline]] inline void fetch_lines(Fetch& fetch) {
#pragma GCC unroll 8
  for (unsigned i = 0; i < kLanes; ++i) {
    const std::byte* const from = fetch.from + fetch.tile * kTileRowBytes;
    __builtin_prefetch(from + kRowsAhead * fetch.pitch, 0, 2);
    std::memcpy(fetch.to + (std::size_t{fetch.tile} * fetch.height + fetch.row) * kTileRowBytes, from, kTileRowBytes);
    if (++fetch.tile < fetch.across) continue;
    fetch.tile = 0;
    fetch.from += fetch.pitch;
    ++fetch.row;
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
      transpose_blocks<kBits>(in + block * kRows * tile.in.pitch, tile, rows[block]);
    } else {
      std::memset(rows[block], 0, sizeof rows[block]);
    }
  }
  for (unsigned c = 0; c < kRows; ++c) {
    store_lines<kLanes, kRows>(rows, c ^ tile.flip, tile, tile.out + right * kRows + c);
    if (tile.fetch != nullptr) fetch_lines<kLanes>(*tile.fetch);
  }
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
