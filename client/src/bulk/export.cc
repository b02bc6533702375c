// Records to a local descriptor, or to whoever takes them.
#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "bulk/blocks.h"
#include "bulk/local_io.h"
#include "bulk/near_blocks.h"
#include "operations/started.h"
#include "pif/base/assert.h"
#include "session/in_use.h"

namespace pif {

namespace client {

namespace {

constexpr std::size_t kBlocksUnderWay = 4;      // by message
constexpr std::size_t kNearBlocksUnderWay = 8;  // through descriptors, in order
constexpr std::size_t kBlockBytesUnderWay = 32u << 20;
constexpr std::size_t kBatchBytes = 4u << 20;  // of variable records
constexpr std::size_t kPlacedBlockBytes = 4u << 20;
constexpr Range kAll{0, UINT64_MAX};  // as BulkOptions has it

// Where the bytes go that are read in order: `bytes`, behind the `position` bytes before them.
using Sink = std::function<Status(std::uint64_t position, std::span<const std::byte> bytes)>;

Sink sink_to(const LocalFile& local) {
  return [&local](std::uint64_t position, std::span<const std::byte> bytes) { return local.write(position, bytes); };
}

// Of a file of this length.
std::uint64_t bytes_of(std::uint64_t record_length, const FileLength& file_length, Range records) {
  const std::uint64_t end = std::min(records.end * record_length, file_length.bytes);
  PIF_ASSERT(records.empty() || end >= records.begin * record_length, records.begin, records.end, end);
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
    PIF_ASSERT(block < blocks_, block, blocks_);
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

// ---- in order, through descriptors ---------------------------------------------------------------------------------

Status read_variable(FileState& file, Range records, const Sink& sink, const Progress& progress, BulkCounts& counts);

// Other threads read the next blocks while one is taken.
class NearExport {
 public:
  NearExport(FileState& file, Range records, const Sink& sink, const Progress& progress)
      : file_(file),
        blocks_(file, records),
        sink_(sink),
        progress_(progress),
        slots_(std::clamp<std::size_t>(kBlockBytesUnderWay / blocks_.bytes_expected(), 2, kNearBlocksUnderWay)) {}
  NearExport(const NearExport&) = delete;
  NearExport& operator=(const NearExport&) = delete;
  ~NearExport() {
    for (Slot& slot : slots_) file_.session->pool().cancel(slot.tasks);
  }

  Result<BulkCounts> run() {
    while (next_ < blocks_.count() && next_ < slots_.size()) start(slots_[next_]);
    for (std::uint64_t block = 0; block < blocks_.count(); ++block) {
      Slot& slot = slots_[block % slots_.size()];
      await(slot);
      PIF_TRY(slot.outcome ? take(slot.block) : read_again(blocks_.records_of(block)));
      PIF_TRY(progress_.report(counts_));
      if (next_ < blocks_.count()) start(slot);
    }
    return counts_;
  }

 private:
  struct Slot {
    NearBlock block;
    Status outcome;
    Pool::Tasks tasks;  // one
  };

  void start(Slot& slot) {
    PIF_ASSERT(next_ < blocks_.count(), next_, blocks_.count());
    slot.tasks.clear();
    slot.tasks.emplace_back([this, &slot, index = next_++] { slot.outcome = blocks_.read(index, slot.block); });
    file_.session->pool().start(slot.tasks.front());
  }

  // While another thread reads this block, later ones are read here: those that others would come to last.
  void await(Slot& slot) {
    PIF_ASSERT(slot.tasks.size() == 1, slot.tasks.size());
    Pool& pool = file_.session->pool();
    for (std::uint64_t later = next_; later > 0 && later + slots_.size() > next_; --later) {
      if (slot.tasks.front().is_done()) break;
      Slot& other = slots_[(later - 1) % slots_.size()];
      if (&other == &slot) break;
      (void)pool.run_if_queued(other.tasks.front());
    }
    pool.finish(slot.tasks);
  }

  Status take(const NearBlock& block) {
    PIF_TRY(sink_(counts_.bytes, block.bytes));
    counts_.bytes += block.bytes.size();
    counts_.records += block.records.size();
    file_.counts.bytes_by_descriptor += block.bytes.size();
    return {};
  }

  // The LFS may have to be asked, and a reader may get a new tail: nobody else may be reading.
  Status read_again(Range records) {
    for (Slot& slot : slots_) file_.session->pool().finish(slot.tasks);
    if (!file_.parts.format.is_fixed()) return read_variable(file_, records, sink_, progress_, counts_);
    const auto out = again_.take(bytes_of(file_.parts.format.record_length, file_.length.now(), records));
    PIF_TRY(file_.reader.read_known(records.begin, out, records.size()));
    PIF_TRY(sink_(counts_.bytes, out));
    counts_.bytes += out.size();
    counts_.records += records.size();
    return {};
  }

  FileState& file_;
  const NearBlocks blocks_;
  const Sink& sink_;
  const Progress& progress_;
  BulkCounts counts_;
  std::uint64_t next_ = 0;  // block that is to be started
  BlockMemory again_;
  std::vector<Slot> slots_;
};

// ---- in order, by message ------------------------------------------------------------------------------------------

// Blocks in order; those that follow are under way while one is taken.
Result<BulkCounts> export_in_order(FileState& file, Range records, const Sink& sink, const Progress& progress) {
  struct Block {
    Range records;
    std::unique_ptr<std::byte[]> bytes;
    File::Operation operation = 0;
  };
  const std::uint64_t length = file.parts.format.record_length;
  const FileLength file_length = file.length.now();
  const std::uint64_t block_records = records_per_block(file, kMessageBlock);
  const std::size_t under_way =
      std::clamp<std::size_t>(kBlockBytesUnderWay / (block_records * length), 1, kBlocksUnderWay);
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
    PIF_ASSERT(!blocks.empty() && blocks.size() <= under_way, blocks.size(), under_way);
    Block& block = blocks.front();
    PIF_TRY(wait_for(file, block.operation));
    const std::uint64_t bytes = bytes_of(length, file_length, block.records);
    PIF_TRY(sink(counts.bytes, {block.bytes.get(), bytes}));
    counts.bytes += bytes;
    counts.records += block.records.size();
    memory.push_back(std::move(block.bytes));
    blocks.pop_front();
    PIF_TRY(progress.report(counts));
  }
  return counts;
}

Result<BulkCounts> export_by_message(FileState& file, Range records, const Sink& sink, const Progress& progress) {
  const File::Operation first = file.next_operation;
  auto counts = export_in_order(file, records, sink, progress);
  // After an error some of its own may be under way, into memory that is gone.
  drop_operations(file, first);
  return counts;
}

// Adds to `counts`, behind which the sink gets it.
Status read_variable(FileState& file, Range records, const Sink& sink, const Progress& progress, BulkCounts& counts) {
  while (!records.empty()) {
    PIF_TRY_VALUE(const RecordBatch batch, file.reader.read_batch(records.begin, records.size(), kBatchBytes));
    if (batch.lengths.empty()) break;
    PIF_TRY(sink(counts.bytes, batch.data));
    counts.bytes += batch.data.size();
    counts.records += batch.lengths.size();
    records.begin += batch.lengths.size();
    PIF_TRY(progress.report(counts));
  }
  return {};
}

// In order, whatever the records are, and however they are reached.
Result<BulkCounts> export_to(FileState& file, Range records, bool direct, const Sink& sink, const Progress& progress) {
  if (direct && !file.creating()) return NearExport(file, records, sink, progress).run();
  if (file.parts.format.is_fixed()) return export_by_message(file, records, sink, progress);
  BulkCounts counts;
  PIF_TRY(read_variable(file, records, sink, progress, counts));
  return counts;
}

// In order, a block at a time.
Result<BulkCounts> export_placed(FileState& state, const Sink& sink, const BulkOptions& options) {
  PIF_TRY_VALUE(const FileLength file_length, state.placed.measure());
  const Progress progress(options, file_length.bytes);
  std::vector<std::byte> block(std::min<std::uint64_t>(kPlacedBlockBytes, file_length.bytes));
  BulkCounts counts;
  while (counts.bytes < file_length.bytes) {
    PIF_TRY_VALUE(const std::size_t bytes, state.placed.pread(block, counts.bytes));
    PIF_ASSERT(bytes > 0 && bytes <= block.size(), counts.bytes, bytes, block.size());  // so this loop ends
    PIF_TRY(sink(counts.bytes, std::span(block).first(bytes)));
    counts.bytes += bytes;
    PIF_TRY(progress.report(counts));
  }
  counts.records = file_length.records;
  PIF_TRY(progress.report(counts));
  return counts;
}

// All that is to be exported.
struct Task {
  Range records;
  Range bytes;                    // of those of these records
  std::uint64_t bytes_total = 0;  // 0: nobody knows
};

Result<Task> task_of_bytes(FileState& state, const BulkOptions& options, const FileLength& file_length) {
  if (options.records != kAll) return fail(Code::kInvalid, "records and bytes are two ranges; one is exported");
  const Range bytes{std::min(options.bytes.begin, file_length.bytes), std::min(options.bytes.end, file_length.bytes)};
  Task task;
  if (bytes.empty()) return task;
  PIF_TRY_VALUE(const auto first, state.record_at_byte(bytes.begin));
  PIF_TRY_VALUE(const auto last, state.record_at_byte(bytes.end - 1));
  task.records = {first.record, last.record + 1};
  task.bytes = {bytes.begin - first.start, bytes.end - first.start};
  task.bytes_total = bytes.size();
  return task;
}

// The part of what comes that is in the range, and where it is there.
Sink within(Range range, const Sink& sink) {
  return [range, &sink](std::uint64_t position, std::span<const std::byte> bytes) -> Status {
    const std::uint64_t begin = std::max(range.begin, position), end = std::min(range.end, position + bytes.size());
    return begin < end ? sink(begin - range.begin, bytes.subspan(begin - position, end - begin)) : Status();
  };
}

Result<Task> task_of(FileState& state, const BulkOptions& options) {
  PIF_TRY(state.check_usable());
  PIF_TRY(state.keep_rights());
  PIF_TRY_VALUE(const FileLength file_length, state.length.get(true));
  Task task;
  task.records = {std::min(options.records.begin, file_length.records),
                  std::min(options.records.end, file_length.records)};
  task.bytes = {0, UINT64_MAX};
  if (options.bytes != kAll) return task_of_bytes(state, options, file_length);
  const bool is_whole = task.records.size() == file_length.records;
  const bool is_fixed = state.parts.format.is_fixed();
  if (is_fixed) task.bytes_total = bytes_of(state.parts.format.record_length, file_length, task.records);
  if (!is_fixed && is_whole) task.bytes_total = file_length.bytes;
  return task;
}

Status check_placed(const FileState& state, const BulkOptions& options) {
  PIF_TRY(state.check_not_ended());
  if (options.records == kAll && options.bytes == kAll) return {};
  return fail(Code::kInvalid, fmt::format("{}: a placed file has bytes, and no records of its own", state.parts.path));
}

// Exports all of it. local: what the sink writes to, if that is a local file.
Result<BulkCounts> export_in_use(FileState& state, const Sink& sink, const LocalFile* local,
                                 const BulkOptions& options) {
  if (state.parts.placed) {
    PIF_TRY(check_placed(state, options));
    return export_placed(state, sink, options);
  }
  PIF_TRY_VALUE(const Task task, task_of(state, options));
  const Progress progress(options, task.bytes_total);
  if (task.records.empty()) {
    PIF_TRY(progress.report({}));
    return BulkCounts{};
  }
  PIF_TRY_VALUE(const bool direct, open_for(state, task.records));
  if (options.bytes != kAll) {
    PIF_TRY_VALUE(BulkCounts counts, export_to(state, task.records, direct, within(task.bytes, sink), progress));
    counts.bytes = task.bytes.size();
    return counts;
  }
  const bool anywhere = local != nullptr && local->seekable() && direct && !state.creating();
  if (anywhere && state.parts.format.is_fixed()) return ParallelExport(state, task.records, *local, progress).run();
  return export_to(state, task.records, direct, sink, progress);
}

Result<BulkCounts> export_to_descriptor(FileState& state, int fd, const BulkOptions& options) {
  PIF_TRY_VALUE(const LocalFile local, LocalFile::of(fd, options, true));
  auto counts = export_in_use(state, sink_to(local), &local, options);
  if (counts) local.set_position(counts->bytes);
  return counts;
}

}  // namespace

}  // namespace client

Result<BulkCounts> export_stream(File& file, int fd, const BulkOptions& options) {
  client::FileState& state = file.state();
  return client::in_use(state.session->user(), [&] { return client::export_to_descriptor(state, fd, options); });
}

Result<BulkCounts> export_blocks(File& file, const BlockSink& sink, const BulkOptions& options) {
  client::FileState& state = file.state();
  const auto take = [&sink](std::uint64_t, std::span<const std::byte> bytes) { return sink(bytes); };
  return client::in_use(state.session->user(), [&] { return client::export_in_use(state, take, nullptr, options); });
}

}  // namespace pif
