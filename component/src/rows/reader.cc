#include <array>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/component.h"
#include "stream/stream_reader.h"

namespace pif::component {
namespace {

constexpr std::size_t kCheckLinesMax = 100;

Status past_end(const Shape& shape, std::string_view what, std::uint64_t first, std::uint64_t count,
                std::uint64_t end) {
  return fail(Code::kEndOfFile, fmt::format("file {}: {} {} to {} are not all there: the component has {}",
                                            shape.file.value, what, first, first + count, end));
}

// Whether fixed rows and bytes belong together.
bool lengths_agree(const Shape& shape, const Tail& tail) {
  return is_fixed_file_length(shape.format.record_length, {tail.rows, tail.bytes});
}

std::string lengths_text(const Shape& shape, const Tail& tail) {
  return fmt::format("file {}: {} rows of {} bytes cannot have {} bytes", shape.file.value, tail.rows,
                     shape.format.record_length, tail.bytes);
}

Status bad_index(const Shape& shape, Row row) {
  return fail(Code::kCorrupt,
              fmt::format("file {}, row {}: the index gives it no possible place", shape.file.value, row));
}

// Ends must rise and stay inside .dat. Sums guard the bytes; this guards against an index that was written wrong.
Status check_ends(const Shape& shape, Row first, std::span<const std::uint64_t> ends, std::uint64_t bytes) {
  PIF_ASSERT(!ends.empty(), first);
  if (ends[0] > bytes) return bad_index(shape, first - 1);  // not of row 0, which begins at 0
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i] < ends[i - 1] || ends[i] > bytes) return bad_index(shape, first + i - 1);
  return {};
}

// Reads the whole index, whose sums hold, for the order of the ends.
void check_index(const Reader& reader, const Shape& shape, std::size_t lines_max, std::vector<std::string>& lines) {
  constexpr std::uint64_t kBatch = 8 * kIndexChunkBytes / sizeof(std::uint64_t);
  const Tail& tail = reader.tail();
  std::vector<std::uint64_t> ends(std::min(kBatch, tail.rows) + 1);
  std::uint64_t end = 0;
  for (Row row = 0; row < tail.rows && lines.size() < lines_max; row += kBatch) {
    const std::uint64_t count = std::min(kBatch, tail.rows - row);
    const auto status = reader.read_ends(row, count, std::span(ends.data(), count + 1));
    if (!status) {
      lines.push_back(status.error().text);
      return;
    }
    end = ends[count];
  }
  if (end != tail.bytes && lines.size() < lines_max)
    lines.push_back(
        fmt::format("file {}: the index ends at byte {}, the data at byte {}", shape.file.value, end, tail.bytes));
}

}  // namespace

Status check_tail(const Shape& shape, const Tail& tail) {
  PIF_TRY(validate(shape, tail));
  if (shape.format.is_fixed() && !lengths_agree(shape, tail)) return fail(Code::kCorrupt, lengths_text(shape, tail));
  return {};
}

Status Reader::read_rows(Row first, std::uint64_t count, Rows out) const {
  PIF_TRY(validate(shape_, tail_));
  if (!shape_.format.is_fixed())
    return fail(Code::kInvalid,
                fmt::format("file {} has variable records: its rows have no fixed place", shape_.file.value));
  if (first > tail_.rows || count > tail_.rows - first) return past_end(shape_, "rows", first, count, tail_.rows);
  if (count == 0) return {};
  const std::uint64_t length = shape_.format.record_length;
  if (!lengths_agree(shape_, tail_)) return fail(Code::kCorrupt, lengths_text(shape_, tail_));
  if (count > 1 && out.stride < length)
    return fail(Code::kInvalid, fmt::format("rows of {} bytes cannot be {} bytes apart", length, out.stride));
  const StoredStream stream = StoredStream::data_of(shape_, tail_, *files_, only_cached_);
  if (out.stride == length || count == 1) {
    const std::uint64_t end = std::min(tail_.bytes, (first + count) * length);
    PIF_ASSERT(end > first * length, first, count, end);
    return read_packed(stream, first * length, {out.base, end - first * length});
  }
  PIF_ASSERT(stream.row_bytes == length, stream.row_bytes, length);
  const bool one_per_chunk = shape_.chunk_bytes == length && length >= kLongRowBytes;
  return one_per_chunk ? read_long_rows(stream, first, count, out) : read_short_rows(stream, first, count, out);
}

Status Reader::read_ends(Row first, std::uint64_t count, std::span<std::uint64_t> ends) const {
  PIF_TRY(validate(shape_, tail_));
  if (shape_.format.is_fixed())
    return fail(Code::kInvalid, fmt::format("file {} has fixed records: it has no index", shape_.file.value));
  if (ends.size() != count + 1)
    return fail(Code::kInvalid, fmt::format("{} places for the {} ends of {} rows", ends.size(), count + 1, count));
  if (first > tail_.rows || count > tail_.rows - first) return past_end(shape_, "rows", first, count, tail_.rows);
  const StoredStream stream = StoredStream::index_of(shape_, tail_, *files_, only_cached_);
  if (first == 0) {
    ends[0] = 0;
    PIF_TRY(read_packed(stream, 0, std::as_writable_bytes(ends.subspan(1))));
  } else {
    PIF_TRY(read_packed(stream, (first - 1) * sizeof(std::uint64_t), std::as_writable_bytes(ends)));
  }
  return check_ends(shape_, first, ends, tail_.bytes);
}

Status Reader::read_bytes(std::uint64_t offset, std::span<std::byte> out) const {
  PIF_TRY(validate(shape_, tail_));
  if (offset > tail_.bytes || out.size() > tail_.bytes - offset)
    return past_end(shape_, "bytes", offset, out.size(), tail_.bytes);
  return read_packed(StoredStream::data_of(shape_, tail_, *files_, only_cached_), offset, out);
}

Status Reader::check_bytes(std::uint64_t offset, std::uint64_t size, std::span<const std::byte> mapped) const {
  PIF_TRY(validate(shape_, tail_));
  if (offset > tail_.bytes || size > tail_.bytes - offset) return past_end(shape_, "bytes", offset, size, tail_.bytes);
  if (mapped.size() < tail_.bytes)
    return fail(Code::kCorrupt,
                fmt::format("{}: the file is shorter than its {} bytes", shape_.file.value, tail_.bytes));
  return check_mapped(StoredStream::data_of(shape_, tail_, *files_), {offset, offset + size}, mapped);
}

Result<std::vector<std::string>> Reader::check() const {
  PIF_TRY(validate(shape_, tail_));
  std::vector<std::string> lines;
  check_stream(StoredStream::data_of(shape_, tail_, *files_), kCheckLinesMax, lines);
  if (shape_.format.is_fixed()) {
    if (!lengths_agree(shape_, tail_)) lines.push_back(lengths_text(shape_, tail_));
    return lines;
  }
  const std::size_t before = lines.size();
  check_stream(StoredStream::index_of(shape_, tail_, *files_), kCheckLinesMax, lines);
  if (lines.size() == before) check_index(*this, shape_, kCheckLinesMax, lines);
  return lines;
}

}  // namespace pif::component
