// The workers of a check. Records lie round robin, so that each has its neighbours on other LFSs: a worker reads all
// records of its shares, from the descriptors of all components, and nothing is sent. The file is checked from its
// beginning in rounds, so that nobody is far beyond the first record that is out of order.
#include <algorithm>

#include "check.h"
#include "messages.h"
#include "pif/base/assert.h"
#include "pif/tool/team.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kFirstRoundBytes = 1u << 20;  // of each worker; then twice as many in each round,
constexpr std::uint64_t kRoundBytesMax = 64u << 20;   // up to this
constexpr std::uint64_t kChunkBytes = 4u << 20;       // that a worker reads at once, from all LFSs together
constexpr std::uint64_t kNone = UINT64_MAX;

// Consecutive records of the file.
class Chunk {
 public:
  Chunk(const std::vector<std::unique_ptr<tool::Input>>& inputs, const parity::Layout& layout)
      : inputs_(inputs), layout_(layout), batches_(inputs.size()), offsets_(inputs.size()) {}

  // Reads records of the range from its beginning, at least one; the first that it did not read.
  Result<RecordNumber> read(Range range);
  // One of those that were read.
  Bytes record(RecordNumber number) const;

 private:
  const std::vector<std::unique_ptr<tool::Input>>& inputs_;
  const parity::Layout& layout_;
  std::vector<tool::RowBatch> batches_;              // by LfsIndex
  std::vector<std::vector<std::uint64_t>> offsets_;  // variable records: where those of a batch begin
};

Result<RecordNumber> Chunk::read(Range range) {
  RecordNumber end = range.end;
  for (LfsIndex lfs = 0; lfs < inputs_.size(); ++lfs) {
    const Range rows = layout_.rows(lfs, range);
    tool::RowBatch& batch = batches_[lfs];
    batch.count = 0;
    if (rows.empty()) continue;
    PIF_TRY(inputs_[lfs]->read(rows.begin, rows.size(), kChunkBytes, batch));
    PIF_ASSERT(batch.count > 0 && batch.first == rows.begin, batch.count, batch.first, rows.begin);
    if (batch.count < rows.size()) end = std::min(end, layout_.record_at({lfs, rows.begin + batch.count}));
    if (batch.record_length > 0) continue;
    std::vector<std::uint64_t>& offsets = offsets_[lfs];
    offsets.assign(1, 0);
    for (const std::uint32_t length : batch.lengths) offsets.push_back(offsets.back() + length);
  }
  PIF_ASSERT(end > range.begin, end, range.begin);
  return end;
}

Bytes Chunk::record(RecordNumber number) const {
  const Cell cell = layout_.locate(number);
  const tool::RowBatch& batch = batches_[cell.lfs];
  const std::uint64_t row = cell.row - batch.first;
  PIF_ASSERT(row < batch.count, row, batch.count);
  if (batch.record_length > 0) return Bytes(batch.data).subspan(row * batch.record_length, batch.record_length);
  return Bytes(batch.data).subspan(offsets_[cell.lfs][row], batch.lengths[row]);
}

class ShareChecker {
 public:
  ShareChecker(tool::Worker& worker, tool::Team& team, tool::Input& input, const KeyMaker& maker, bool unique,
               std::uint64_t skipped)
      : worker_(worker), team_(team), input_(input), maker_(maker), unique_(unique), skipped_(skipped) {}

  Result<CheckOutcome> run();

 private:
  void check(Range range);
  [[nodiscard]] Status check_chunk(Chunk& chunk, Range range, RecordNumber& next);

  tool::Worker& worker_;
  tool::Team& team_;
  tool::Input& input_;
  const KeyMaker& maker_;
  bool unique_;
  std::uint64_t skipped_;
  std::vector<std::unique_ptr<tool::Input>> inputs_;  // by LfsIndex
  std::string last_, key_;
  std::uint64_t bytes_ = 0;  // of records of the present round
  CheckOutcome outcome_;
};

// From `next` on, which stays at the record that is out of order, or whose key cannot be made.
Status ShareChecker::check_chunk(Chunk& chunk, Range range, RecordNumber& next) {
  PIF_TRY_VALUE(const RecordNumber end, chunk.read({next, range.end}));
  for (; next < end; ++next) {
    const Bytes record = chunk.record(next);
    const bool is_before = next < range.begin;  // the last record of the share before this one
    bytes_ += is_before ? 0 : record.size();
    PIF_TRY(maker_.make_key(record, key_));
    const int order = is_before || next == skipped_ ? -1 : last_.compare(key_);
    if (order > 0 || (order == 0 && unique_)) {
      outcome_.suspect = next;
      return {};
    }
    std::swap(last_, key_);
  }
  return {};
}

void ShareChecker::check(Range range) {
  bytes_ = 0;
  if (range.empty()) return;
  const FileLength& file_length = input_.file_length();
  const std::uint64_t record = std::max<std::uint64_t>(file_length.bytes / file_length.records, 1);
  const std::uint64_t at_once = std::max<std::uint64_t>(kChunkBytes / record, 1);
  Chunk chunk(inputs_, input_.layout());
  RecordNumber next = range.begin - (range.begin > skipped_ ? 1 : 0);
  while (next < range.end && !outcome_.suspect) {
    const Status checked = check_chunk(chunk, {range.begin, std::min(next + at_once, range.end)}, next);
    if (checked) continue;
    outcome_.suspect = next;
    outcome_.error = checked.error().text;
  }
}

Result<CheckOutcome> ShareChecker::run() {
  if (!worker_.shares_machine()) return outcome_;
  outcome_.is_done = true;
  PIF_TRY_VALUE(inputs_, team_.share_input(input_));
  const FileLength& file_length = input_.file_length();
  const std::uint64_t width = worker_.width(),
                      record = std::max<std::uint64_t>(file_length.bytes / file_length.records, 1);
  std::uint64_t round_bytes = kFirstRoundBytes;
  for (RecordNumber first = skipped_; first < file_length.records;) {
    const std::uint64_t each = std::max<std::uint64_t>(round_bytes / record, 1);
    const RecordNumber begin = std::min(first + worker_.rank() * each, file_length.records);
    const Range own{begin, std::min(begin + each, file_length.records)};
    check(own);
    PIF_TRY_VALUE(const auto all, team_.all_gather_numbers({outcome_.suspect.value_or(kNone)}));
    const std::uint64_t lowest = (*std::min_element(all.begin(), all.end()))[0];
    if (own.begin <= lowest) outcome_.bytes += bytes_;
    if (lowest != kNone) break;
    first = std::min(first + width * each, file_length.records);
    round_bytes = std::min(2 * round_bytes, kRoundBytesMax);
    worker_.progress(file_length.bytes / file_length.records * first / width, file_length.bytes / width);
  }
  for (const auto& input : inputs_) {
    if (input) input_.count_read(input->bytes_read());
  }
  inputs_.clear();
  PIF_TRY(team_.barrier());
  return outcome_;
}

}  // namespace

Status check_share(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, bool unique,
                   std::uint64_t skipped) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  PIF_TRY_VALUE(const CheckOutcome outcome, ShareChecker(worker, team, input, maker, unique, skipped).run());
  worker.set_result(pack(outcome));
  return {};
}

}  // namespace pif::sort
