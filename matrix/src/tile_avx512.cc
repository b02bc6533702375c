#include "network.h"

namespace pif::matrix {

void transpose_tile_avx512(const Tile& tile) { transpose_tile<8>(tile); }

}  // namespace pif::matrix
