#include "pif/pattern/zip.h"

namespace pif::patterns {

std::optional<RunPair> Zip::next_run(std::uint64_t bytes_max, std::uint64_t pairs_max) {
  PIF_ASSERT(bytes_max > 0 && pairs_max > 0);
  if (left() == 0) return std::nullopt;
  const std::uint64_t size = pair_bytes(bytes_max);
  const auto file = file_.repetition(size);
  const auto memory = memory_.repetition(size);
  const std::uint64_t count = std::min({file.count, memory.count, std::min(left(), bytes_max) / size, pairs_max});
  RunPair run{file_.offset(), memory_.offset(), size, 0, 0, count};
  if (count > 1) {
    run.file_stride = file.stride;
    run.memory_stride = memory.stride;
  }
  file_.pass(size, count);
  memory_.pass(size, count);
  return run;
}

}  // namespace pif::patterns
