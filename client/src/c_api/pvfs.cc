// PVFS's partitions: where the program is in one is what a request skips.
#include "pif/client/pvfs.h"

#include "c_api/c_pieces.h"
#include "pif/pattern/builders.h"

using namespace pif::c_api;
using pif::File;
using pif::Result;

namespace {

int64_t move(pif_partition* partition, How how, const char* name, const void* memory, size_t bytes) {
  if (partition == nullptr) return -PIF_E_INVALID;
  return with_file(partition->file, {{name, memory, bytes}}, [&](File& file) -> Result<uint64_t> {
    if (bytes == 0) return 0;
    File::Pieces pieces;
    pieces.file = pif::patterns::partition(partition->offset, partition->group_bytes, partition->stride);
    pieces.memory = pif::patterns::range(0, bytes);
    pieces.skip = partition->position;
    PIF_TRY_VALUE(const uint64_t moved, transfer(file, how, pieces, bytes_of(const_cast<void*>(memory), bytes)));
    partition->position += moved;
    return moved;
  });
}

}  // namespace

extern "C" {

int64_t pif_partition_read(pif_partition* partition, void* out, size_t bytes) {
  return move(partition, How::kRead, "out", out, bytes);
}
int64_t pif_partition_write(pif_partition* partition, const void* in, size_t bytes) {
  return move(partition, How::kWrite, "in", in, bytes);
}

}  // extern "C"
