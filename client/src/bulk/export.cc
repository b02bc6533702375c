// Records to a local descriptor.
#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "bulk/blocks.h"
#include "bulk/local_io.h"
#include "file/async.h"
#include "session/in_use.h"

namespace pif {

namespace client {

namespace {

constexpr std::size_t kBlocksUnderWay = 4;  // by message
constexpr std::size_t kBlockBytesUnderWay = 32u << 20;
constexpr std::size_t kBatchBytes = 4u << 20;  // of variable records
constexpr std::size_t kPlacedBlockBytes = 4u << 20;

// Of a file of this length.
std::uint64_t bytes_of(std::uint64_t record_length, const FileLength& file_length, Range records) {
  const std::uint64_t end = std::min(records.end * record_length, file_length.bytes);
  return records.empty() ? 0 : end - records.begin * record_length;
}

// ---- fixed records, several threads --------------------------------------------------------------------------------

class ParallelExport {
 public:
  ParallelExport(FileState& file, Range records, const LocalFile& local, const Progress& progress)
      : file_(file),
        records_(records),
        file_length_(file.length.now()),
        local_(local),
        progress_(progress),
        length_(file.parts.format.record_length),
        block_records_(records_per_block(file, kDirectBlock)),
        blocks_((records.size() + block_records_ - 1) / block_records_) {}

  Result<BulkCounts> run() {
    PIF_TRY(do_blocks(
        file_.session->pool(), blocks_, [this] { return worker(); }, [this] { return report(); }));
    // What could not be read through descriptors needs the LFS, and so this thread.
    std::vector<std::byte> buffer(failed_blocks_.empty() ? 0 : block_records_ * length_);
    for (const std::uint64_t block : failed_blocks_) {
      const Range records = records_of(block);
      const auto out = std::span(buffer).first(bytes_of(length_, file_length_, records));
      PIF_TRY(file_.reader.read(records.begin, out, records.size()));
      PIF_TRY(local_.write(block * block_records_ * length_, out));
    }
    const BulkCounts counts{bytes_of(length_, file_length_, records_), records_.size()};
    file_.counts.bytes_by_descriptor += counts.bytes;
    PIF_TRY(progress_.report(counts));
    return counts;
  }

 private:
  Range records_of(std::uint64_t block) const {
    const RecordNumber first = records_.begin + block * block_records_;
    return {first, std::min(records_.end, first + block_records_)};
  }

  BlockWorker worker() {
    const std::shared_ptr buffer = std::make_unique_for_overwrite<std::byte[]>(block_records_ * length_);
    return [this, buffer, ranges = std::vector<access::RowRange>()](std::uint64_t block) mutable {
      auto status = export_block(block, buffer.get(), ranges);
      done_records_ += block_records_;
      return status;
    };
  }

  Status report() {
    const std::uint64_t records = std::min<std::uint64_t>(done_records_, records_.size());
    return progress_.report({records * length_, records});
  }

  Status export_block(std::uint64_t block, std::byte* buffer, std::vector<access::RowRange>& ranges) {
    PIF_TRY(progress_.check());
    const Range records = records_of(block);
    access::split(file_.parts.layout, records, ranges);
    for (const access::RowRange& rows : ranges) {
      const ReadPart part{rows, buffer, records.begin, file_length_, 0};
      if (file_.reader.read_near(part)) continue;
      const std::lock_guard lock(mutex_);
      failed_blocks_.push_back(block);
      return {};
    }
    // One at a time: the kernel lets only one thread write to a file anyway, and others would spin for their turn.
    const std::lock_guard turn(write_turn_);
    return local_.write(block * block_records_ * length_, {buffer, bytes_of(length_, file_length_, records)});
  }

  FileState& file_;
  const Range records_;
  const FileLength file_length_;  // of the file, as the export goes by
  const LocalFile& local_;
  const Progress& progress_;
  const std::uint64_t length_, block_records_, blocks_;
  std::atomic<std::uint64_t> done_records_{0};
  std::mutex write_turn_;
  std::mutex mutex_;
  std::vector<std::uint64_t> failed_blocks_;  // guarded by mutex_
};

// Opens every LFS that has rows of the range; whether all are reached by descriptor.
Result<bool> open_for(FileState& file, Range records) {
  std::vector<access::RowRange> ranges;
  access::split(file.parts.layout, records, ranges);
  std::vector<LfsIndex> lfss;
  for (const access::RowRange& rows : ranges) lfss.push_back(rows.lfs);
  PIF_TRY(file.reader.open(lfss));
  return std::all_of(lfss.begin(), lfss.end(), [&](LfsIndex lfs) { return file.reader.is_near(lfs); });
}

// Blocks in order; those that follow are under way (by message) while one is written.
Result<BulkCounts> export_in_order(FileState& file, Range records, const LocalFile& local, const Progress& progress,
                                   bool ahead) {
  struct Block {
    Range records;
    std::unique_ptr<std::byte[]> bytes;
    File::Operation operation = 0;
  };
  const std::uint64_t length = file.parts.format.record_length;
  const FileLength file_length = file.length.now();
  const std::uint64_t block_records = records_per_block(file, kMessageBlock);
  const std::size_t fitting =
      std::clamp<std::size_t>(kBlockBytesUnderWay / (block_records * length), 1, kBlocksUnderWay);
  const std::size_t under_way = ahead ? fitting : 1;
  std::deque<Block> blocks;
  std::vector<std::unique_ptr<std::byte[]>>
      memory;  // of blocks that are done: fresh memory would have to be faulted in
  BulkCounts counts;
  RecordNumber next = records.begin;
  while (next < records.end || !blocks.empty()) {
    while (next < records.end && blocks.size() < under_way) {
      Block block;
      block.records = {next, std::min(records.end, next + block_records)};
      if (memory.empty()) memory.push_back(std::make_unique_for_overwrite<std::byte[]>(block_records * length));
      block.bytes = std::move(memory.back());
      memory.pop_back();
      const std::span out(block.bytes.get(), bytes_of(length, file_length, block.records));
      PIF_TRY_VALUE(block.operation, start_read(file, next, out, block.records.size()));
      next = block.records.end;
      blocks.push_back(std::move(block));
    }
    Block& block = blocks.front();
    PIF_TRY(wait_for(file, block.operation));
    const std::uint64_t bytes = bytes_of(length, file_length, block.records);
    PIF_TRY(local.write(counts.bytes, {block.bytes.get(), bytes}));
    counts.bytes += bytes;
    counts.records += block.records.size();
    memory.push_back(std::move(block.bytes));
    blocks.pop_front();
    PIF_TRY(progress.report(counts));
  }
  return counts;
}

Result<BulkCounts> export_fixed(FileState& file, Range records, const LocalFile& local, const Progress& progress) {
  PIF_TRY_VALUE(const bool direct, open_for(file, records));
  if (direct && local.seekable() && !file.creating()) return ParallelExport(file, records, local, progress).run();
  const File::Operation first = file.next_operation;
  auto counts = export_in_order(file, records, local, progress, !direct);
  // After an error some of its own may be under way, into memory that is gone.
  file.operations.erase(file.operations.lower_bound(first), file.operations.end());
  return counts;
}

Result<BulkCounts> export_variable(FileState& file, Range records, const LocalFile& local, const Progress& progress) {
  BulkCounts counts;
  while (counts.records < records.size()) {
    PIF_TRY_VALUE(const RecordBatch batch,
                  file.reader.read_batch(records.begin + counts.records, records.size() - counts.records, kBatchBytes));
    if (batch.lengths.empty()) break;
    PIF_TRY(local.write(counts.bytes, batch.data));
    counts.bytes += batch.data.size();
    counts.records += batch.lengths.size();
    PIF_TRY(progress.report(counts));
  }
  return counts;
}

// In order, a block at a time.
Result<BulkCounts> export_placed(FileState& state, int fd, const BulkOptions& options) {
  PIF_TRY(state.check_not_ended());
  if (options.records.begin != 0 || options.records.end != UINT64_MAX)
    return fail(Code::kInvalid,
                fmt::format("{}: a placed file has bytes, and no records of its own", state.parts.path));
  PIF_TRY_VALUE(const FileLength file_length, state.placed.measure());
  PIF_TRY_VALUE(const LocalFile local, LocalFile::of(fd, options, true));
  const Progress progress(options, file_length.bytes);
  std::vector<std::byte> block(std::min<std::uint64_t>(kPlacedBlockBytes, file_length.bytes));
  BulkCounts counts;
  while (counts.bytes < file_length.bytes) {
    PIF_TRY_VALUE(const std::size_t bytes, state.placed.pread(block, counts.bytes));
    PIF_TRY(local.write(counts.bytes, std::span(block).first(bytes)));
    counts.bytes += bytes;
    PIF_TRY(progress.report(counts));
  }
  counts.records = file_length.records;
  PIF_TRY(progress.report(counts));
  local.set_position(counts.bytes);
  return counts;
}

Result<BulkCounts> export_in_use(FileState& state, int fd, const BulkOptions& options) {
  if (state.parts.placed) return export_placed(state, fd, options);
  PIF_TRY(state.check_usable());
  PIF_TRY(state.keep_rights());
  PIF_TRY_VALUE(const FileLength file_length, state.length.get(true));
  const Range records{std::min(options.records.begin, file_length.records),
                      std::min(options.records.end, file_length.records)};
  PIF_TRY_VALUE(const LocalFile local, LocalFile::of(fd, options, true));
  const bool fixed = state.parts.format.is_fixed();
  const bool whole = records.size() == file_length.records;
  const std::uint64_t total = fixed   ? bytes_of(state.parts.format.record_length, file_length, records)
                              : whole ? file_length.bytes
                                      : 0;
  const Progress progress(options, total);
  if (records.empty()) {
    PIF_TRY(progress.report({}));
    return BulkCounts{};
  }
  auto counts =
      fixed ? export_fixed(state, records, local, progress) : export_variable(state, records, local, progress);
  if (counts) local.set_position(counts->bytes);
  return counts;
}

}  // namespace

}  // namespace client

Result<BulkCounts> export_stream(File& file, int fd, const BulkOptions& options) {
  client::FileState& state = file.state();
  return client::in_use(state.session->user(), [&] { return client::export_in_use(state, fd, options); });
}

}  // namespace pif
