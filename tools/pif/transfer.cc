#include "transfer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "io.h"
#include "pif/base/limits.h"

namespace pif::cli {
namespace {

constexpr std::size_t kStretchBytes = 8u << 20;  // moved at once; two such buffers are in turn
constexpr std::size_t kBatchRecordsMax = 64u << 10;

// As many whole records as fit a stretch, at least one.
std::size_t stretch_bytes(std::uint32_t record_length) {
  return std::max<std::size_t>(1, kStretchBytes / record_length) * record_length;
}

// An operation under way on a buffer that must outlive it.
class Pending {
 public:
  explicit Pending(File& file) : file_(file) {}
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() {
    // Its result no longer matters, but its memory is about to go.
    if (operation_) static_cast<void>(file_.wait(*operation_).has_value());
  }
  bool is_set() const { return operation_.has_value(); }
  void set(File::Operation operation) { operation_ = operation; }
  Result<std::uint64_t> wait() {
    const File::Operation operation = *operation_;
    operation_.reset();
    return file_.wait(operation);
  }

 private:
  File& file_;
  std::optional<File::Operation> operation_;
};

// Reads the next stretch while the one before is on its way.
Result<std::uint64_t> fill_fixed(File& file, int fd, const std::string& name, const OnBytes& on_bytes) {
  const std::uint32_t length = file.format().record_length;
  std::array<std::vector<std::byte>, 2> buffers;
  std::uint64_t records = 0, bytes = 0;
  Pending pending(file);
  for (std::size_t turn = 0;; turn = 1 - turn) {
    auto& buffer = buffers[turn];
    buffer.resize(stretch_bytes(length));
    PIF_TRY_VALUE(const std::size_t n, read_full(fd, buffer, name));
    if (pending.is_set()) PIF_TRY(pending.wait());
    if (n == 0) return bytes;
    PIF_TRY_VALUE(const auto operation, file.start_write(records, std::span(buffer).first(n)));
    pending.set(operation);
    records += (n + length - 1) / length;
    bytes += n;
    PIF_TRY(on_bytes(n));
  }
}

// Cuts a stream of bytes into records that end with a delimiter.
class Splitter {
 public:
  Splitter(File& file, std::string name) : file_(file), name_(std::move(name)), delimiter_(file.format().delimiter) {}

  std::span<std::byte> room() {
    if (buffer_.size() - filled_ < kStretchBytes / 2) buffer_.resize(filled_ + kStretchBytes);
    return std::span(buffer_).subspan(filled_);
  }
  // `n` bytes have come into room(): stores the records that are complete.
  Status take(std::size_t n) {
    std::size_t searched = filled_;
    filled_ += n;
    std::size_t start = 0;
    while (const void* found = std::memchr(buffer_.data() + searched, delimiter_, filled_ - searched)) {
      const std::size_t end = static_cast<std::size_t>(static_cast<const std::byte*>(found) - buffer_.data()) + 1;
      PIF_TRY(add(end - start));
      start = searched = end;
      if (lengths_.size() < kBatchRecordsMax) continue;
      PIF_TRY(flush(start));
      searched -= start;
      start = 0;
    }
    PIF_TRY(flush(start));
    if (filled_ > kRecordLengthMax) return too_long(filled_);
    return {};
  }
  // The end of the stream: what is left is a record without a delimiter.
  Status finish() {
    if (filled_ == 0) return {};
    PIF_TRY(add(filled_));
    return flush(filled_);
  }

 private:
  Status too_long(std::size_t bytes) const {
    return fail(Code::kTooLarge, fmt::format("{}: record {} has {} bytes or more, {} are allowed; use another delimiter, or "
                                             "--record-length",
                                             name_, records_, bytes, kRecordLengthMax));
  }
  Status add(std::size_t bytes) {
    if (bytes > kRecordLengthMax) return too_long(bytes);
    lengths_.push_back(static_cast<std::uint32_t>(bytes));
    ++records_;
    return {};
  }
  // Stores the collected records: the first `bytes` of the buffer.
  Status flush(std::size_t bytes) {
    if (lengths_.empty()) return {};
    PIF_TRY(file_.write_batch(lengths_, std::span(buffer_).first(bytes)));
    lengths_.clear();
    std::memmove(buffer_.data(), buffer_.data() + bytes, filled_ - bytes);
    filled_ -= bytes;
    return {};
  }

  File& file_;
  std::string name_;
  int delimiter_;
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;
  std::vector<std::uint32_t> lengths_;
  std::uint64_t records_ = 0;
};

Result<std::uint64_t> fill_delimited(File& file, int fd, const std::string& name, const OnBytes& on_bytes) {
  Splitter splitter(file, name);
  std::uint64_t bytes = 0;
  while (true) {
    PIF_TRY_VALUE(const std::size_t n, read_full(fd, splitter.room(), name));
    if (n == 0) break;
    PIF_TRY(splitter.take(n));
    bytes += n;
    PIF_TRY(on_bytes(n));
  }
  PIF_TRY(splitter.finish());
  return bytes;
}

// Bytes of records `range` of a file of fixed records.
std::uint64_t bytes_of(const Extent& extent, std::uint32_t length, Range range) {
  return std::min(extent.bytes, range.end * length) - std::min(extent.bytes, range.begin * length);
}

// Writes one stretch while the next is on its way.
Result<std::uint64_t> drain_fixed(File& file, Range range, const Extent& extent, int fd, const std::string& name,
                                  const OnBytes& on_bytes) {
  const std::uint32_t length = file.format().record_length;
  const std::uint64_t step = stretch_bytes(length) / length;
  std::array<std::vector<std::byte>, 2> buffers;
  std::uint64_t bytes = 0;
  Pending pending(file);
  const auto request = [&](std::size_t turn, RecordNumber first) -> Status {
    if (first >= range.end) return {};
    buffers[turn].resize(stretch_bytes(length));
    PIF_TRY_VALUE(const auto operation, file.start_read(first, buffers[turn], std::min(step, range.end - first)));
    pending.set(operation);
    return {};
  };
  PIF_TRY(request(0, range.begin));
  std::size_t turn = 0;
  for (RecordNumber first = range.begin; first < range.end; first += step, turn = 1 - turn) {
    const std::uint64_t wanted = std::min(step, range.end - first);
    PIF_TRY_VALUE(const std::uint64_t got, pending.wait());
    if (got != wanted) return fail(Code::kStaleFile, fmt::format("the file became shorter while it was read, at record {}", first + got));
    PIF_TRY(request(1 - turn, first + step));
    const std::uint64_t n = bytes_of(extent, length, {first, first + got});
    PIF_TRY(write_all(fd, std::span(buffers[turn]).first(n), name));
    bytes += n;
    PIF_TRY(on_bytes(n));
  }
  return bytes;
}

Result<std::uint64_t> drain_variable(File& file, Range range, int fd, const std::string& name, const OnBytes& on_bytes) {
  std::uint64_t bytes = 0;
  for (RecordNumber next = range.begin; next < range.end;) {
    PIF_TRY_VALUE(const RecordBatch batch, file.read_batch_at(next, range.end - next, kStretchBytes));
    if (batch.lengths.empty()) return fail(Code::kStaleFile, fmt::format("the file became shorter while it was read, at record {}", next));
    PIF_TRY(write_all(fd, batch.data, name));
    next += batch.lengths.size();
    bytes += batch.data.size();
    PIF_TRY(on_bytes(batch.data.size()));
  }
  return bytes;
}

}  // namespace

Result<std::uint64_t> fill(File& file, int fd, const std::string& name, const OnBytes& on_bytes) {
  return file.format().is_fixed() ? fill_fixed(file, fd, name, on_bytes) : fill_delimited(file, fd, name, on_bytes);
}

Result<std::uint64_t> drain(File& file, const OpenRange& range, int fd, const std::string& name, const OnBytes& on_bytes) {
  PIF_TRY_VALUE(const Extent extent, file.extent());
  const Range clipped = range.clip(extent.records);
  if (clipped.empty()) return std::uint64_t{0};
  return file.format().is_fixed() ? drain_fixed(file, clipped, extent, fd, name, on_bytes)
                                  : drain_variable(file, clipped, fd, name, on_bytes);
}

}  // namespace pif::cli
