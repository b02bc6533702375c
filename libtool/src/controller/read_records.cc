#include "pif/tool/read_records.h"

#include <algorithm>
#include <numeric>

namespace pif::tool {
namespace {

constexpr std::uint64_t kReadBytes = 1u << 20;

}  // namespace

Result<RecordBatch> read_records(File& file, const FileLength& file_length, RecordNumber begin, std::uint64_t count) {
  const Format format = file.format();
  if (!format.is_fixed()) return file.read_batch_at(begin, count);
  RecordBatch batch;
  const std::uint64_t fits = std::min(count, std::max<std::uint64_t>(1, kReadBytes / format.record_length));
  for (std::uint64_t i = 0; i < fits; ++i)
    batch.lengths.push_back(fixed_record_bytes(format.record_length, file_length, begin + i));
  batch.data.resize(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::size_t{0}));
  PIF_TRY(file.read_at(begin, batch.data, fits));
  return batch;
}

}  // namespace pif::tool
