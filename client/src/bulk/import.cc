// Local bytes into a file being created.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "bulk/blocks.h"
#include "bulk/local_io.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "session/in_use.h"

namespace pif {

namespace client {

namespace {

constexpr std::size_t kScanBytes = 4u << 20;  // of a delimited stream, read at once

// ---- fixed records, several threads --------------------------------------------------------------------------------

// Blocks of a regular file, straight into the components.
class ParallelImport {
 public:
  ParallelImport(FileState& file, const LocalFile& local, const Progress& progress)
      : file_(file),
        local_(local),
        progress_(progress),
        length_(file.parts.format.record_length),
        block_records_(records_per_block(file, kDirectBlock)),
        block_bytes_(block_records_ * length_),
        blocks_((local.size() + block_bytes_ - 1) / block_bytes_) {}

  Result<BulkCounts> run() {
    PIF_TRY(do_blocks(
        file_.session->pool(), blocks_, [this] { return worker(); }, [this] { return report(); }));
    const std::uint64_t bytes = local_.size();
    const FileLength file_length = fixed_file_length(file_.parts.format.record_length, bytes);
    std::vector<access::RowRange> ranges;
    access::split(file_.parts.layout, {0, file_length.records}, ranges);
    for (const access::RowRange& rows : ranges) file_.writer.note_written(rows);
    file_.length.grow_to(file_length);
    file_.position = file_length.records;
    PIF_TRY(progress_.report({bytes, file_length.records}));
    return BulkCounts{bytes, file_length.records};
  }

 private:
  BlockWorker worker() {
    const std::shared_ptr buffer = std::make_unique_for_overwrite<std::byte[]>(block_bytes_);
    return [this, buffer, ranges = std::vector<access::RowRange>()](std::uint64_t block) mutable {
      auto status = import_block(block, buffer.get(), ranges);
      done_bytes_ += block_bytes_;
      return status;
    };
  }

  Status report() {
    file_.session->keep_alive();
    const std::uint64_t bytes = std::min<std::uint64_t>(done_bytes_, local_.size());
    return progress_.report({bytes, bytes / length_});
  }

  Status import_block(std::uint64_t block, std::byte* buffer, std::vector<access::RowRange>& ranges) {
    PIF_TRY(progress_.check());
    PIF_ASSERT(block < blocks_, block, blocks_);
    const std::uint64_t position = block * block_bytes_;
    const std::size_t wanted = std::min(block_bytes_, local_.size() - position);
    PIF_TRY_VALUE(const std::size_t got, local_.read(position, {buffer, wanted}));
    if (got != wanted)
      return fail(Code::kIo, fmt::format("the local file became shorter: it ends at byte {}", position + got));
    const RecordNumber first = block * block_records_;
    const Range records{first, first + (got + length_ - 1) / length_};
    access::split(file_.parts.layout, records, ranges);
    // Each thread begins with another LFS, so that they do not wait for the same file.
    PIF_ASSERT(!ranges.empty(), block, got);
    const std::size_t offset = block % ranges.size();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const access::RowRange& rows = ranges[(i + offset) % ranges.size()];
      PIF_TRY(file_.writer.sink(rows.lfs).write_records(rows, records, {buffer, got}));
    }
    return {};
  }

  FileState& file_;
  const LocalFile& local_;
  const Progress& progress_;
  const std::uint64_t length_, block_records_, block_bytes_, blocks_;
  std::atomic<std::uint64_t> done_bytes_{0};
};

// Opens every LFS that will get rows; whether all are reached by descriptor.
Result<bool> open_for(FileState& file, std::uint64_t records) {
  std::vector<access::RowRange> ranges;
  access::split(file.parts.layout, {0, records}, ranges);
  return file.writer.open(ranges);
}

Result<BulkCounts> import_in_order(FileState& file, const LocalFile& local, const Progress& progress) {
  const std::uint64_t length = file.parts.format.record_length;
  const std::uint64_t block_bytes = records_per_block(file, kMessageBlock) * length;
  // No more than it takes to see the end of a short file.
  const std::uint64_t wanted =
      local.seekable() ? std::min(block_bytes, (local.size() / length + 1) * length) : block_bytes;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(wanted);
  while (true) {
    PIF_TRY(progress.check());
    PIF_TRY_VALUE(const std::size_t got, local.read(file.length.bytes(), {buffer.get(), wanted}));
    if (got > 0) PIF_TRY(file.write(file.length.records(), {buffer.get(), got}));
    PIF_TRY(progress.report({file.length.bytes(), file.length.records()}));
    if (got < wanted) break;
  }
  file.position = file.length.records();
  return BulkCounts{file.length.bytes(), file.length.records()};
}

Result<BulkCounts> import_fixed(FileState& file, const LocalFile& local, const Progress& progress) {
  // With bevies blocks are not whole chunks at every LFS: one thread. The same where nobody makes sums here.
  if (local.seekable() && local.size() > 0 && file.parts.layout.is_even() && !file.scattered.is_on()) {
    const FileLength file_length = fixed_file_length(file.parts.format.record_length, local.size());
    PIF_TRY_VALUE(const bool direct, open_for(file, file_length.records));
    if (direct) return ParallelImport(file, local, progress).run();
  }
  return import_in_order(file, local, progress);
}

// ---- delimited records ---------------------------------------------------------------------------------------------

// Cuts a stream at its delimiters and writes the records in batches.
class DelimitedImport {
 public:
  DelimitedImport(FileState& file, const LocalFile& local, const Progress& progress)
      : file_(file),
        local_(local),
        progress_(progress),
        delimiter_(file.parts.format.delimiter),
        buffer_(local.seekable() ? std::min<std::size_t>(kScanBytes, local.size() + 1) : kScanBytes) {}

  Result<BulkCounts> run() {
    for (bool more = true; more;) {
      PIF_TRY_VALUE(more, fill());
      PIF_TRY(write_whole(!more));
      PIF_TRY(progress_.report({file_.length.bytes(), file_.length.records()}));
    }
    file_.position = file_.length.records();
    return BulkCounts{file_.length.bytes(), file_.length.records()};
  }

 private:
  // Reads behind what is left over. False at the end of the input.
  Result<bool> fill() {
    if (used_ == buffer_.size()) {  // one record as long as the buffer
      if (used_ > kRecordLengthMax) {
        return fail(Code::kTooLarge,
                    fmt::format("the record at byte {} is longer than {} bytes: is the delimiter right?",
                                file_.length.bytes(), kRecordLengthMax));
      }
      buffer_.resize(std::min<std::size_t>(buffer_.size() * 2, std::size_t{kRecordLengthMax} + 1));
    }
    PIF_ASSERT(used_ < buffer_.size(), used_, buffer_.size());
    const auto room = std::span(buffer_).subspan(used_);
    PIF_TRY_VALUE(const std::size_t got, local_.read(file_.length.bytes() + used_, room));
    used_ += got;
    return got == room.size();
  }

  Status write_whole(bool at_end) {
    lengths_.clear();
    const std::byte* at = buffer_.data() + scanned_from_zero();
    const std::byte* begin = buffer_.data();
    const std::byte* const end = begin + used_;
    while (const void* found = std::memchr(at, delimiter_, static_cast<std::size_t>(end - at))) {
      const auto* next = static_cast<const std::byte*>(found) + 1;
      PIF_TRY(add(begin, next));
      begin = at = next;
    }
    if (at_end && begin < end) {
      PIF_TRY(add(begin, end));
      begin = end;
    }
    const auto size = static_cast<std::size_t>(begin - buffer_.data());
    PIF_ASSERT(size <= used_, size, used_);
    PIF_TRY(file_.keep_rights());
    if (!lengths_.empty()) PIF_TRY(file_.writer.append_batch(lengths_, std::span(buffer_).first(size)));
    used_ -= size;
    std::memmove(buffer_.data(), buffer_.data() + size, used_);
    scanned_ = used_;
    return {};
  }

  // What is left over from before has no delimiter in it.
  std::size_t scanned_from_zero() const { return std::min(scanned_, used_); }

  Status add(const std::byte* begin, const std::byte* end) {
    const auto length = static_cast<std::size_t>(end - begin);
    if (length > kRecordLengthMax) {
      return fail(Code::kTooLarge, fmt::format("the record at byte {} is longer than {} bytes: is the delimiter right?",
                                               file_.length.bytes() + static_cast<std::size_t>(begin - buffer_.data()),
                                               kRecordLengthMax));
    }
    lengths_.push_back(static_cast<std::uint32_t>(length));
    return {};
  }

  FileState& file_;
  const LocalFile& local_;
  const Progress& progress_;
  const int delimiter_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;     // bytes in the buffer
  std::size_t scanned_ = 0;  // of them without a delimiter
  std::vector<std::uint32_t> lengths_;
};

Result<BulkCounts> import_in_use(FileState& state, int fd, const BulkOptions& options) {
  PIF_TRY(state.check_usable());
  PIF_TRY(state.keep_rights());
  if (!state.creating() || state.length.records() != 0) {
    return fail(Code::kInvalid, fmt::format("{}: only a new file takes in a stream", state.parts.path));
  }
  if (state.parts.format.kind == RecordKind::kVariable) {
    return fail(Code::kInvalid,
                fmt::format("{}: a stream cannot be cut into variable records without a delimiter", state.parts.path));
  }
  PIF_TRY_VALUE(LocalFile local, LocalFile::of(fd, options, false));
  local.set_idle([&state] { state.session->keep_alive(); });
  const Progress progress(options, local.size());
  auto counts = state.parts.format.is_fixed() ? import_fixed(state, local, progress)
                                              : DelimitedImport(state, local, progress).run();
  if (counts) local.set_position(counts->bytes);
  return counts;
}

}  // namespace

}  // namespace client

Result<BulkCounts> import_stream(File& file, int fd, const BulkOptions& options) {
  client::FileState& state = file.state();
  return client::in_use(state.session->user(), [&] { return client::import_in_use(state, fd, options); });
}

}  // namespace pif
