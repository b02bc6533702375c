#include "output/share_merge.h"

#include <algorithm>
#include <future>

#include "pif/tool/parallel.h"
#include "pif/tool/parts.h"

namespace pif::sort {
namespace {

// Of records, and of where they come from, that all threads of a worker have made and not written yet; a batch of one
// thread has room for some even where there are many threads.
constexpr std::size_t kMadeBytes = 8u << 20;
constexpr std::size_t kBatchBytesMin = 256u << 10;

}  // namespace

ShareMerge::Part::Part(const KeyMaker& maker, const RecordNumbers& numbers, std::span<const RunView> runs, Range range)
    : left(range),
      order(maker, numbers),
      merge(runs, cut_at(runs, range.begin, order), cut_at(runs, range.end, order), order) {}

ShareMerge::ShareMerge(tool::Worker& worker, const KeyMaker& maker, const RecordNumbers& numbers,
                       const tool::Output& output, std::span<const RunView> runs, Range share)
    : worker_(worker), output_(output), runs_(runs) {
  if (share.empty()) return;
  const std::uint64_t alignment = ParallelOutput::alignment(output.format(), output.layout());
  const tool::Parts parts(share, {.most = worker.threads(), .unit = alignment});
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts_.push_back(std::make_unique<Part>(maker, numbers, runs_, parts[i]));
  const std::size_t bytes = std::max(kMadeBytes / 2 / parts_.size(), kBatchBytesMin);
  const std::size_t room = std::max<std::size_t>(1, bytes / (output.format().record_length + sizeof(Pick)));
  for (const auto& part : parts_) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(room, part->left.size()));
    for (OutputBatch& batch : part->batches) batch.make_room(most, output.format().record_length);
  }
}

Status ShareMerge::write_batches(ParallelOutput& out, std::size_t which) const {
  for (const auto& part : parts_) PIF_TRY(out.write(part->batches[which]));
  return {};
}

Status ShareMerge::write(ParallelOutput& out, const std::function<void(std::uint64_t records)>& written) {
  std::future<Status> writing;
  const bool beside = worker_.threads() > 1;
  for (std::size_t which = 0;; which = 1 - which) {
    tool::for_each_part(worker_.threads(), parts_.size(), [&](std::size_t i) {
      Part& part = *parts_[i];
      out.fill(part.left.begin, part.merge, runs_, part.batches[which]);
      part.left.begin += part.batches[which].count;
    });
    if (writing.valid()) PIF_TRY(writing.get());
    std::uint64_t records = 0;
    for (const auto& part : parts_) records += part->batches[which].count;
    if (records == 0) return {};
    if (beside) {
      writing = worker_.start([this, &out, which] { return write_batches(out, which); });
    } else {
      PIF_TRY(write_batches(out, which));
    }
    written(records);
  }
}

}  // namespace pif::sort
