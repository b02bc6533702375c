// One tile, with the best instructions that the machine has.
#pragma once

#include "pif/matrix/transpose.h"

namespace pif::matrix {

// Tiles side by side that are copied, row by row, while others are put out: rows that lie far apart come from memory
// slowly one line at a time, and a core that waits for what it reads does not write meanwhile.
struct Fetch {
  const std::byte* from;  // the row that comes next
  std::size_t pitch;
  std::byte* to;         // tile after tile, each of `height` lines
  std::uint32_t across;  // tiles
  std::uint32_t height;
  std::uint32_t row = 0, tile = 0;  // what comes next
};
inline constexpr unsigned kRowsAhead = 16;  // are asked for before they are copied

struct Tile {
  ConstRows in;            // kTileRowBytes of each row
  std::size_t to_next;     // from here to the tile that is read after this one
  std::uint32_t blocks;    // of 64 / bits rows that are there; what lies below them counts as zero
  std::byte* const* out;   // where tile_elements() rows of the result begin
  std::size_t out_offset;  // in them, of the kTileRowBytes that are written
  std::uint32_t bits;      // of an element
  std::uint32_t flip;      // element c of a byte's is stored as the (c ^ flip)th from its low end
  Fetch* fetch;            // goes on by tile_elements() lines; null if there is nothing to be fetched
  bool past_cache;         // all places are multiples of 64 bytes, and nobody reads them soon
};

void transpose_tile(const Tile& tile);

}  // namespace pif::matrix
