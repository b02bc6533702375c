#include "stream/stream_writer.h"
#include "pif/base/assert.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace pif::component {
namespace {

constexpr std::uint64_t kDirectBytes = 32u << 10;    // from here on whole chunks pass by the window
constexpr std::size_t kPendingMax = 2048;            // sums that one write collects
constexpr std::uint64_t kWritebackBytes = 8u << 20;  // written before the kernel is asked to start on them
constexpr std::size_t kStretchesMax = 64;            // that may grow in turn
constexpr std::size_t kSumBatch = 512;

std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) { return value / unit * unit; }
std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return round_down(value + unit - 1, unit); }

}  // namespace

void Source::gather(std::uint64_t from, std::size_t size, std::byte* to) const {
  if (packed()) {
    std::memcpy(to, base + from, size);
    return;
  }
  PIF_ASSERT(row_bytes > 0, from, size, stride);
  std::uint64_t row = from / row_bytes;
  std::size_t within = from % row_bytes;
  while (size > 0) {
    const std::size_t n = std::min(size, row_bytes - within);
    std::memcpy(to, base + row * stride + within, n);
    to += n;
    size -= n;
    within = 0;
    ++row;
  }
}

Status StreamWriter::write(std::uint64_t offset, const Source& in, std::uint64_t size) {
  if (size == 0) return {};
  if (offset > kLengthMax || size > kLengthMax - offset)
    return fail(Code::kTooLarge,
                fmt::format("file {}: no component can have a byte {}", stream_.file.value, offset + size - 1));
  const std::uint64_t end = offset + size;
  const std::uint64_t begin_whole = round_up(offset, chunk_bytes());
  const std::uint64_t end_whole = round_down(end, chunk_bytes());
  const bool direct = end_whole >= begin_whole + kDirectBytes;
  PIF_ASSERT(!direct || (offset <= begin_whole && end_whole <= end), offset, end, begin_whole, end_whole);
  {
    const std::lock_guard guard(mutex_);
    PIF_TRY(fill_up_to(offset));
    PIF_TRY(patch(offset, in, 0, direct ? begin_whole - offset : size));
    if (direct) PIF_TRY(begin_direct(begin_whole, end_whole));
  }
  if (direct) {
    Status status = write_whole(begin_whole, end_whole, in, begin_whole - offset);
    const std::lock_guard guard(mutex_);
    PIF_TRY(end_direct(begin_whole, end_whole, std::move(status)));
    PIF_TRY(patch(end_whole, in, end_whole - offset, end - end_whole));
  }
  start_writeback({offset, end});
  return {};
}

Status StreamWriter::begin_direct(std::uint64_t begin, std::uint64_t end) {
  PIF_ASSERT(begin < end && begin % chunk_bytes() == 0 && end % chunk_bytes() == 0, begin, end, chunk_bytes());
  const std::uint64_t window_begin = window_chunk_ * chunk_bytes();
  const std::uint64_t window_end = window_begin + window_.size();
  const bool covered = begin <= window_begin && window_end <= end;  // all that is in it is replaced
  if (!covered) PIF_TRY(flush());                                   // also so that sums come in the order of chunks
  if (begin < window_end && window_begin < end) drop_window();
  length_ = std::max(length_, end);
  return {};
}

Status StreamWriter::end_direct(std::uint64_t begin, std::uint64_t end, Status status) {
  if (status) {
    if (failure_ && begin <= failed_begin_ && failed_end_ <= end) failure_.reset();
    return status;
  }
  failed_begin_ = failure_ ? std::min(failed_begin_, begin) : begin;
  failed_end_ = failure_ ? std::max(failed_end_, end) : end;
  if (!failure_) failure_ = status.error();
  PIF_ASSERT(failed_begin_ < failed_end_, failed_begin_, failed_end_);
  return status;
}

Status StreamWriter::write_whole(std::uint64_t begin, std::uint64_t end, const Source& in, std::uint64_t from) {
  if (in.packed()) return write_packed(begin, end, in.base + from);
  // The stretch starts with a chunk, so with one row per chunk it starts with a row.
  if (in.row_bytes == chunk_bytes() && in.row_bytes >= kLongRowBytes)
    return write_long_rows(begin, end, in, from / in.row_bytes);
  return write_gathered(begin, end, in, from);
}

Status StreamWriter::write_packed(std::uint64_t begin, std::uint64_t end, const std::byte* bytes) {
  std::array<std::uint64_t, kSumBatch> sums;
  const std::uint64_t slice = std::min(kSumBatch, stream_.slice_chunks(kSliceBytes)) * chunk_bytes();
  while (begin < end) {
    const std::uint64_t stop = std::min(end, begin + slice);
    const std::uint64_t chunk = begin / chunk_bytes();
    const std::size_t count = (stop - begin) / chunk_bytes();
    PIF_ASSERT(count > 0 && count <= sums.size() && begin % chunk_bytes() == 0, begin, stop, count);
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = stream_.sum(chunk + i, {bytes + i * chunk_bytes(), stream_.chunk_bytes});
    PIF_TRY(stream_.data->write(begin, std::span(bytes, stop - begin)));
    PIF_TRY(take_sums(chunk, std::span(sums.data(), count)));
    bytes += stop - begin;
    begin = stop;
  }
  return {};
}

Status StreamWriter::write_long_rows(std::uint64_t begin, std::uint64_t end, const Source& in, std::uint64_t first) {
  std::array<ConstPiece, kPieces> pieces;
  std::array<std::uint64_t, kPieces> sums;
  const std::size_t slice = std::min(kPieces, stream_.slice_chunks(kSliceBytes));
  PIF_ASSERT(in.row_bytes == chunk_bytes(), in.row_bytes, chunk_bytes());
  const std::byte* row = in.base + first * in.stride;
  for (std::uint64_t chunk = begin / chunk_bytes(); chunk < end / chunk_bytes();) {
    const std::size_t count = std::min<std::uint64_t>(slice, end / chunk_bytes() - chunk);
    for (std::size_t i = 0; i < count; ++i, row += in.stride) {
      pieces[i] = {row, in.row_bytes};
      sums[i] = stream_.sum(chunk + i, {row, in.row_bytes});
    }
    PIF_TRY(stream_.data->write(chunk * chunk_bytes(), std::span(pieces.data(), count)));
    PIF_TRY(take_sums(chunk, std::span(sums.data(), count)));
    chunk += count;
  }
  return {};
}

Status StreamWriter::write_gathered(std::uint64_t begin, std::uint64_t end, const Source& in, std::uint64_t from) {
  PIF_ASSERT((end - begin) % chunk_bytes() == 0, begin, end, chunk_bytes());
  const std::size_t slice = stream_.slice_chunks(kBounceBytes) * chunk_bytes();
  alignas(64) std::array<std::byte, kBounceBytes> stack;
  std::vector<std::byte> heap(slice > stack.size() ? slice : 0);
  std::byte* const buffer = heap.empty() ? stack.data() : heap.data();
  while (begin < end) {
    const std::size_t size = std::min<std::uint64_t>(slice, end - begin);
    in.gather(from, size, buffer);
    PIF_TRY(write_packed(begin, begin + size, buffer));
    from += size;
    begin += size;
  }
  return {};
}

Status StreamWriter::take_sums(std::uint64_t chunk, std::span<const std::uint64_t> sums) {
  const std::lock_guard guard(mutex_);
  return push_sums(chunk, sums);
}

void StreamWriter::start_writeback(Range written) {
  std::optional<Range> ready;
  {
    const std::lock_guard guard(mutex_);
    ready = writeback_.add(written);
  }
  if (ready) stream_.data->start_writeback(ready->begin, ready->size());
}

std::optional<Range> Writeback::add(Range range) {
  PIF_ASSERT(range.begin <= range.end && stretches_.size() <= kStretchesMax, range.begin, range.end);
  const auto before =
      std::find_if(stretches_.begin(), stretches_.end(), [&](const Range& each) { return each.end == range.begin; });
  if (before != stretches_.end()) {
    range.begin = before->begin;
    stretches_.erase(before);
  }
  const bool is_due = range.size() >= kWritebackBytes;
  stretches_.push_back(is_due ? Range{range.end, range.end} : range);
  if (stretches_.size() > kStretchesMax) stretches_.erase(stretches_.begin());  // nobody goes on there
  return is_due ? std::optional(range) : std::nullopt;
}

// ---- the window ---------------------------------------------------------------------------------------------------

Status StreamWriter::fill_up_to(std::uint64_t offset) {
  if (offset <= length_) return {};
  if (length_ % chunk_bytes() != 0) {
    const std::uint64_t chunk = length_ / chunk_bytes();
    PIF_TRY(hold(chunk, false));
    const std::uint64_t upto = std::min(offset, (chunk + 1) * chunk_bytes());
    window_.resize(upto - window_chunk_ * chunk_bytes());
    length_ = upto;
  }
  if (offset > length_) {
    const std::uint64_t begin = length_ / chunk_bytes();
    const std::uint64_t end = offset / chunk_bytes();
    if (begin == end) return {};
    gap_begin_ = gap_begin_ == gap_end_ ? begin : std::min(gap_begin_, begin);
    gap_end_ = std::max(gap_end_, end);
  }
  return {};
}

Status StreamWriter::patch(std::uint64_t offset, const Source& in, std::uint64_t from, std::uint64_t size) {
  while (size > 0) {
    const std::uint64_t chunk = offset / chunk_bytes();
    const std::uint64_t within = offset % chunk_bytes();
    const std::size_t n = std::min(size, chunk_bytes() - within);
    const bool replaced = within == 0 && (n == chunk_bytes() || offset + n >= length_);
    PIF_TRY(hold(chunk, replaced));
    PIF_ASSERT(n > 0 && chunk >= window_chunk_, n, chunk, window_chunk_);
    const std::size_t at = (chunk - window_chunk_) * chunk_bytes() + within;
    if (window_.size() < at + n) window_.resize(at + n);
    in.gather(from, n, window_.data() + at);
    dirty_ = std::min(dirty_, at);
    offset += n;
    from += n;
    size -= n;
    length_ = std::max(length_, offset);
  }
  return {};
}

// Makes the window one that has, or goes on with, this chunk. `replaced`: all its bytes are about to be given.
Status StreamWriter::hold(std::uint64_t chunk, bool replaced) {
  if (in_window(chunk)) return {};
  const bool follows = !window_.empty() && window_.size() % chunk_bytes() == 0 &&
                       chunk == window_chunk_ + window_.size() / chunk_bytes();
  const bool fresh = replaced || chunk * chunk_bytes() >= length_;
  if (follows && fresh && window_.size() < window_max()) return {};
  PIF_TRY(flush());
  drop_window();
  window_chunk_ = chunk;
  return fresh ? Status() : load(chunk);
}

void StreamWriter::drop_window() {
  window_.clear();
  dirty_ = 0;
}

// Into the empty window, verified: a flipped bit must not get a fresh sum.
Status StreamWriter::load(std::uint64_t chunk) {
  const std::size_t size = stream_.size_of(chunk, length_);
  PIF_ASSERT(window_.empty() && size > 0, chunk, length_);
  std::optional<std::uint64_t> sum = tail_sum_;
  if (size == chunk_bytes()) {
    PIF_TRY_VALUE(sum, known_sum(chunk));
  }
  std::vector<std::byte> bytes(size);
  if (sum) {
    PIF_TRY_VALUE(const std::size_t n, stream_.data->read(chunk * chunk_bytes(), bytes));
    if (n != size || stream_.sum(chunk, bytes) != *sum)
      return fail(Code::kCorrupt,
                  fmt::format("{}: the bytes do not match their checksum", stream_.place(chunk, length_)));
  }
  window_ = std::move(bytes);
  window_chunk_ = chunk;
  dirty_ = window_.size();
  return {};
}

Status StreamWriter::flush() {
  if (dirty_ >= window_.size()) return {};
  const std::span<const std::byte> bytes(window_);
  const std::uint64_t begin = window_chunk_ * chunk_bytes();
  PIF_ASSERT(begin + window_.size() <= length_, begin, window_.size(), length_);
  PIF_TRY(stream_.data->write(begin + dirty_, bytes.subspan(dirty_)));
  std::array<std::uint64_t, kSumBatch> sums;
  std::size_t count = 0;
  std::uint64_t chunk = window_chunk_ + dirty_ / chunk_bytes();
  for (std::size_t at = round_down(dirty_, chunk_bytes()); at < bytes.size(); at += chunk_bytes()) {
    const auto part = bytes.subspan(at, std::min<std::size_t>(chunk_bytes(), bytes.size() - at));
    const std::uint64_t sum = stream_.sum(window_chunk_ + at / chunk_bytes(), part);
    if (part.size() < chunk_bytes()) {
      tail_sum_ = sum;
      break;
    }
    sums[count++] = sum;
    if (count == sums.size()) {
      PIF_TRY(push_sums(chunk, sums));
      chunk += count;
      count = 0;
    }
  }
  PIF_TRY(push_sums(chunk, std::span(sums.data(), count)));
  dirty_ = window_.size();
  return {};
}

// ---- sums ---------------------------------------------------------------------------------------------------------

// Of a whole chunk outside the window; nothing if it was never written.
Result<std::optional<std::uint64_t>> StreamWriter::known_sum(std::uint64_t chunk) {
  PIF_TRY(flush_sums());
  std::array<std::uint64_t, 2> words{};
  PIF_TRY(stream_.sums->read(chunk * stream_.sum_bytes(),
                             std::as_writable_bytes(std::span(words).first(stream_.sum_words()))));
  stream_.load_sums(words, 1);
  if (words[0] == stream_.unwritten_sum() && chunk >= gap_begin_ && chunk < gap_end_)
    return std::optional<std::uint64_t>();
  return std::optional(words[0]);
}

Status StreamWriter::push_sums(std::uint64_t chunk, std::span<const std::uint64_t> sums) {
  if (sums.empty()) return {};
  if (!pending_.empty() && (chunk != pending_chunk_ + pending_.size() || pending_.size() + sums.size() > kPendingMax))
    PIF_TRY(flush_sums());
  if (pending_.empty()) pending_chunk_ = chunk;
  PIF_ASSERT(chunk == pending_chunk_ + pending_.size(), chunk, pending_chunk_, pending_.size());
  pending_.insert(pending_.end(), sums.begin(), sums.end());
  PIF_ASSERT(pending_.size() <= kPendingMax, pending_.size());
  return {};
}

Status StreamWriter::flush_sums() {
  if (pending_.empty()) return {};
  PIF_TRY(stream_.write_sums(pending_chunk_, pending_));
  pending_.clear();
  return {};
}

// Gives the chunks that nobody wrote the sums of zeros, which is what a file has where it was not written.
Status StreamWriter::fill_gaps() {
  if (gap_begin_ == gap_end_) return {};
  PIF_TRY(flush_sums());
  PIF_ASSERT(gap_begin_ < gap_end_, gap_begin_, gap_end_);
  const std::vector<std::byte> zeros(chunk_bytes());
  const std::uint64_t zero_hash = hash_bytes(zeros);
  const std::uint64_t end = std::min(gap_end_, length_ / chunk_bytes());
  std::array<std::uint64_t, 2 * kSumBatch> words;
  for (std::uint64_t chunk = gap_begin_; chunk < end; chunk += kSumBatch) {
    const std::size_t count = std::min<std::uint64_t>(kSumBatch, end - chunk);
    const auto stored = std::span(words).first(count * stream_.sum_words());
    std::fill(stored.begin(), stored.end(), 0);
    PIF_TRY(stream_.sums->read(chunk * stream_.sum_bytes(), std::as_writable_bytes(stored)));
    stream_.load_sums(words, count);
    const auto batch = std::span(words).first(count);
    for (std::size_t i = 0; i < count; ++i)
      if (batch[i] == stream_.unwritten_sum()) batch[i] = zero_hash ^ chunk_mix(stream_.file, stream_.id, chunk + i);
    PIF_TRY(stream_.write_sums(chunk, batch));
  }
  gap_begin_ = gap_end_ = 0;
  return {};
}

// ---- the rest -----------------------------------------------------------------------------------------------------

Status StreamWriter::peek(std::uint64_t offset, std::span<std::byte> out) {
  const std::lock_guard guard(mutex_);
  PIF_ASSERT(offset % chunk_bytes() + out.size() <= chunk_bytes(), offset, out.size(), chunk_bytes());
  PIF_TRY(hold(offset / chunk_bytes(), false));
  std::memcpy(out.data(), window_.data() + (offset - window_chunk_ * chunk_bytes()), out.size());
  return {};
}

Status StreamWriter::truncate(std::uint64_t length) {
  const std::lock_guard guard(mutex_);
  const std::uint64_t chunk = length / chunk_bytes();
  const std::uint64_t window_begin = window_chunk_ * chunk_bytes();
  if (length <= window_begin) drop_window();
  // A last chunk that becomes partial has no sum until it is read.
  if (length < length_ && length % chunk_bytes() != 0) {
    PIF_TRY(hold(chunk, false));
    window_.resize(length - window_chunk_ * chunk_bytes());
    dirty_ = std::min(dirty_, window_.size());
    tail_sum_ = stream_.sum(chunk, std::span(window_).subspan((chunk - window_chunk_) * chunk_bytes()));
  } else if (!window_.empty() && length < window_begin + window_.size()) {
    window_.resize(length - window_begin);
    dirty_ = std::min(dirty_, window_.size());
  }
  if (length < length_) {
    pending_.resize(std::min<std::uint64_t>(pending_.size(), chunk - std::min(chunk, pending_chunk_)));
    failed_end_ = std::min(failed_end_, length);
    if (failed_begin_ >= failed_end_) failure_.reset();
    length_ = length;
  }
  PIF_TRY(stream_.data->resize(length));
  return stream_.sums->resize(chunk * stream_.sum_bytes());
}

Result<std::uint64_t> StreamWriter::finish() {
  const std::lock_guard guard(mutex_);
  if (failure_) return fail(*failure_);
  PIF_TRY(flush());
  PIF_TRY(flush_sums());
  PIF_TRY(fill_gaps());
  PIF_ASSERT(pending_.empty() && dirty_ >= window_.size(), pending_.size(), dirty_, window_.size());
  if (length_ % chunk_bytes() == 0) return std::uint64_t{0};
  return stream_.with_stamp_0(tail_sum_);
}

}  // namespace pif::component
