// One tile, with one instruction set each. Every function here is in a file of its own, compiled for its instructions: it
// must not be called where these are missing.
#pragma once

#include "pif/matrix/transpose.h"

namespace pif::matrix {

struct Tile {
  ConstRows in;             // kTileRowBytes of each row
  std::uint32_t blocks;     // of 64 / bits rows that are there; what lies below them counts as zero
  std::byte* const* out;    // where tile_elements() rows of the result begin
  std::size_t out_offset;   // in them, of the kTileRowBytes that are written
  std::uint32_t bits;       // of an element
  std::uint32_t flip;       // element c of a byte's is stored as the (c ^ flip)th from its low end
  bool past_cache;          // all places are multiples of 64 bytes, and nobody reads them soon
};

using TileFunction = void (*)(const Tile&);

void transpose_tile_portable(const Tile& tile);
void transpose_tile_avx2(const Tile& tile);
void transpose_tile_avx512(const Tile& tile);

}  // namespace pif::matrix
