#include "network.h"

namespace pif::matrix {

void transpose_tile_portable(const Tile& tile) { transpose_tile<2>(tile); }

}  // namespace pif::matrix
