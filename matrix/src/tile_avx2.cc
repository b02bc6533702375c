#include "network.h"

namespace pif::matrix {

void transpose_tile_avx2(const Tile& tile) { transpose_tile<4>(tile); }

}  // namespace pif::matrix
