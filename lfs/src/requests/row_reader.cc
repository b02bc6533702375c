#include "requests/row_reader.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/net/calls.h"
#include "requests/piece_requests.h"
#include "store/convert.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kEndsAtOnce = 8192;        // of the index, while it is found out how many rows fit a body
constexpr std::size_t kGatherBytes = 256u << 10;   // read at once when short rows at a distance are picked out
constexpr std::uint64_t kScanBytesMax = 4u << 20;  // read for one request, whatever of it is asked for
constexpr std::uint64_t kCloseRows = 64;           // at such distances rows' ends are read many at once
constexpr std::uint64_t kRowsMax = kBulkBytes / sizeof(std::uint32_t);

Status past_end(const RowSource& source, std::string_view what, std::uint64_t at, std::uint64_t end) {
  return fail(Code::kEndOfFile,
              fmt::format("{} {} of file {} is asked for, this LFS has {}", what, at, name_of(source.shape.file), end));
}

Status too_long(std::uint64_t bytes, std::size_t bytes_max) {
  return fail(Code::kTooLarge, fmt::format("a record of {} bytes does not fit a packet of {} here: ask through ZeroMQ",
                                           bytes, bytes_max));
}

// Whether rows at this distance are picked out of large reads, not read one by one.
bool are_close(std::uint64_t stride, std::uint64_t length) { return stride * length < kGatherBytes / 4; }

// What picking one row of many at this distance reads.
std::uint64_t scanned_for(std::uint64_t stride, std::uint64_t length, std::uint64_t chunk_bytes) {
  return are_close(stride, length) ? stride * length : length + chunk_bytes;
}

// Picks rows that lie `stride` apart out of large reads.
Status gather(const component::Reader& reader, std::uint64_t first, std::uint64_t count, std::uint64_t stride,
              std::uint64_t length, std::span<std::byte> out) {
  const std::uint64_t end_of_data = reader.tail().bytes;
  if (!are_close(stride, length)) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = (first + i * stride) * length;
      PIF_TRY(reader.read_bytes(at, out.subspan(i * length, std::min(length, end_of_data - at))));
    }
    return {};
  }
  std::vector<std::byte> window;
  PIF_ASSERT(stride * length > 0 && out.size() > (count - 1) * length, stride, count, out.size());
  const std::uint64_t rows_at_once = kGatherBytes / (stride * length);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t rows = std::min(rows_at_once, count - done);
    const std::uint64_t begin = (first + done * stride) * length;
    const std::uint64_t end = std::min(begin + ((rows - 1) * stride + 1) * length, end_of_data);
    window.resize(end - begin);
    PIF_TRY(reader.read_bytes(begin, window));
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t at = i * stride * length;
      std::memcpy(out.data() + (done + i) * length, window.data() + at, std::min(length, window.size() - at));
    }
    done += rows;
  }
  return {};
}

void note_scanned(const RowSource& source, std::uint64_t bytes) {
  if (source.scanned != nullptr) *source.scanned = bytes;
}

struct Span {  // of rows asked for
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;
};

Result<net::Buffer> read_fixed(const RowSource& source, Span& span) {
  const std::uint64_t length = source.shape.format.record_length;
  if (length > source.bytes_max && source.bytes_max < kBulkBytes)
    return fail(too_long(length, source.bytes_max).error());
  span.count = std::min(span.count, std::max<std::uint64_t>(source.bytes_max / length, 1));
  if (span.stride > 1) {
    const std::uint64_t each = scanned_for(span.stride, length, source.shape.chunk_bytes);
    span.count = std::min(span.count, std::max<std::uint64_t>(kScanBytesMax / each, 1));
    note_scanned(source, span.count * each);
  }
  const std::uint64_t last = span.first + (span.count - 1) * span.stride;
  PIF_ASSERT(span.count > 0 && last < source.reader.tail().rows, last, source.reader.tail().rows);
  const std::uint64_t last_bytes = std::min(length, source.reader.tail().bytes - last * length);
  PIF_ASSERT(last_bytes > 0, last);
  net::Buffer body((span.count - 1) * length + last_bytes);
  if (span.stride == 1) {
    PIF_TRY(source.reader.read_bytes(span.first * length, body.span()));
  } else {
    PIF_TRY(gather(source.reader, span.first, span.count, span.stride, length, body.span()));
  }
  return body;
}

Result<net::Buffer> read_variable(const RowSource& source, Span& span) {
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint64_t> ends;
  std::uint64_t begin = 0;
  std::uint64_t total = 0;
  const std::uint64_t rows_max = std::min(span.count, kRowsMax);
  for (bool full = false; !full && lengths.size() < rows_max;) {
    const std::uint64_t count = std::min(kEndsAtOnce, rows_max - lengths.size());
    ends.resize(count + 1);
    PIF_TRY(source.reader.read_ends(span.first + lengths.size(), count, ends));
    if (lengths.empty()) begin = ends[0];
    for (std::uint64_t i = 0; i < count && !full; ++i) {
      const std::uint64_t row_bytes = ends[i + 1] - ends[i];
      full = !lengths.empty() && total + row_bytes + (lengths.size() + 1) * sizeof(std::uint32_t) > source.bytes_max;
      if (full) break;
      lengths.push_back(static_cast<std::uint32_t>(row_bytes));
      total += row_bytes;
    }
  }
  const std::size_t head = lengths.size() * sizeof(std::uint32_t);
  if (head + total > source.bytes_max && source.bytes_max < kBulkBytes)
    return fail(too_long(total, source.bytes_max).error());
  PIF_ASSERT(!lengths.empty() && lengths.size() <= span.count, lengths.size(), span.count);
  span.count = lengths.size();
  net::Buffer body(head + total);
  std::memcpy(body.data(), lengths.data(), head);
  PIF_TRY(source.reader.read_bytes(begin, body.span().subspan(head)));
  return body;
}

// Variable rows at a distance, picked out of large reads where they lie close together.
class StridedRows {
 public:
  explicit StridedRows(const RowSource& source) : source_(source) {}

  // Adds rows of the span until the reply is full, or enough has been read for it.
  Status add(const Span& span) {
    const std::uint64_t rows_max = std::min(span.count, kRowsMax);
    while (!is_full_ && lengths.size() < rows_max && scanned_ < kScanBytesMax) {
      const std::uint64_t at_once = span.stride <= kCloseRows ? kEndsAtOnce / span.stride : 1;
      const std::uint64_t count = std::min(at_once, rows_max - lengths.size());
      const Row first = span.first + lengths.size() * span.stride;
      ends_.resize((count - 1) * span.stride + 2);
      PIF_TRY(source_.reader.read_ends(first, ends_.size() - 1, ends_));
      for (std::uint64_t i = 0; i < count && !is_full_ && scanned_ < kScanBytesMax; ++i)
        PIF_TRY(add_row(ends_[i * span.stride], ends_[i * span.stride + 1]));
    }
    return {};
  }
  std::uint64_t scanned() const { return scanned_; }
  std::size_t head_bytes() const { return lengths.size() * sizeof(std::uint32_t); }

  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;

 private:
  Status add_row(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t bytes = end - begin;
    const bool fits = data.size() + bytes + head_bytes() + sizeof(std::uint32_t) <= source_.bytes_max;
    is_full_ = !fits && !lengths.empty();
    if (is_full_) return {};
    if (!fits && source_.bytes_max < kBulkBytes) return too_long(bytes, source_.bytes_max);
    if (bytes > 0 && (begin < window_begin_ || end > window_begin_ + window_.size()))
      PIF_TRY(move_window(begin, bytes));
    const std::byte* const from = window_.data() + (bytes > 0 ? begin - window_begin_ : 0);
    data.insert(data.end(), from, from + bytes);
    lengths.push_back(static_cast<std::uint32_t>(bytes));
    return {};
  }
  // To where a row begins. It is as large as the rows in front of it were close together.
  Status move_window(std::uint64_t begin, std::uint64_t bytes) {
    const bool is_close = begin < window_begin_ + window_.size() + kGatherBytes / 4;
    std::uint64_t size = is_close && !lengths.empty() ? kGatherBytes : source_.shape.chunk_bytes;
    size = std::min(std::max(size, bytes), source_.reader.tail().bytes - begin);
    window_.resize(size);
    window_begin_ = begin;
    scanned_ += size + source_.shape.chunk_bytes;
    return source_.reader.read_bytes(begin, window_);
  }

  const RowSource& source_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::byte> window_;  // of .dat
  std::uint64_t window_begin_ = 0;
  std::uint64_t scanned_ = 0;  // bytes
  bool is_full_ = false;
};

Result<net::Buffer> read_variable_strided(const RowSource& source, Span& span) {
  StridedRows rows(source);
  PIF_TRY(rows.add(span));
  note_scanned(source, rows.scanned());
  PIF_ASSERT(!rows.lengths.empty() && rows.lengths.size() <= span.count, rows.lengths.size(), span.count);
  span.count = rows.lengths.size();
  net::Buffer body(rows.head_bytes() + rows.data.size());
  std::memcpy(body.data(), rows.lengths.data(), rows.head_bytes());
  if (!rows.data.empty()) std::memcpy(body.data() + rows.head_bytes(), rows.data.data(), rows.data.size());
  return body;
}

Result<net::Packet> read_rows(const proto::Envelope& request, const RowSource& source) {
  const auto& asked = request.read();
  Span span{asked.first(), asked.count(), std::max<std::uint64_t>(asked.stride(), 1)};
  const std::uint64_t rows = source.reader.tail().rows;
  if (span.count == 0) return fail(Code::kInvalid, "a read of no rows");
  if (span.first >= rows) return fail(past_end(source, "row", span.first, rows).error());
  span.count = std::min(span.count, (rows - 1 - span.first) / span.stride + 1);
  net::Packet reply = net::reply_to(request);
  PIF_TRY_VALUE(reply.body, source.shape.format.is_fixed() ? read_fixed(source, span)
                            : span.stride == 1             ? read_variable(source, span)
                                                           : read_variable_strided(source, span));
  reply.envelope.mutable_read_reply()->set_rows(span.count);
  return reply;
}

Result<net::Packet> read_bytes(const proto::Envelope& request, const RowSource& source) {
  const auto& asked = request.read_bytes();
  const std::uint64_t end = source.reader.tail().bytes;
  if (asked.bytes() == 0) return fail(Code::kInvalid, "a read of no bytes");
  if (asked.offset() >= end) return fail(past_end(source, "byte", asked.offset(), end).error());
  const auto bytes = std::min({asked.bytes(), end - asked.offset(), std::uint64_t{source.bytes_max}});
  net::Packet reply = net::reply_to(request);
  reply.body = net::Buffer(bytes);
  PIF_TRY(source.reader.read_bytes(asked.offset(), reply.body.span()));
  reply.envelope.mutable_done();
  return reply;
}

Result<net::Packet> read_offsets(const proto::Envelope& request, const RowSource& source) {
  const auto& asked = request.offsets();
  if (source.shape.format.is_fixed()) return fail(Code::kInvalid, "fixed-length records have no offsets to ask for");
  const auto count = static_cast<std::size_t>(asked.rows_size());
  if (count * sizeof(std::uint64_t) > source.bytes_max)
    return fail(Code::kTooLarge, fmt::format("offsets of {} rows at once", count));
  const auto tail = source.reader.tail();
  std::vector<std::uint64_t> offsets;
  for (const auto row : asked.rows()) {
    if (row > tail.rows) return fail(past_end(source, "row", row, tail.rows).error());
    std::uint64_t offset = row == tail.rows ? tail.bytes : 0;
    if (row > 0 && row < tail.rows) PIF_TRY(source.reader.read_ends(row, 0, std::span(&offset, 1)));
    offsets.push_back(offset);
  }
  net::Packet reply = net::reply_to(request);
  reply.body = net::Buffer::copy_of(std::as_bytes(std::span(offsets)));
  reply.envelope.mutable_done();
  return reply;
}

}  // namespace

FileId file_of_read(const proto::Envelope& request) {
  if (request.has_read()) return FileId(request.read().file());
  if (request.has_read_pieces()) return FileId(request.read_pieces().file());
  return FileId(request.has_read_bytes() ? request.read_bytes().file() : request.offsets().file());
}

Result<net::Packet> answer_read(const proto::Envelope& request, const RowSource& source) {
  if (request.has_read()) return read_rows(request, source);
  if (request.has_read_pieces()) {
    std::uint64_t scanned = 0;
    auto pieces = read_published(source.asked, source.reader, source.bytes_max, scanned);
    note_scanned(source, scanned);
    if (!pieces) return pieces;
    net::Packet reply = net::reply_to(request);
    reply.body = std::move(pieces->body);
    reply.envelope.mutable_done();
    return reply;
  }
  return request.has_read_bytes() ? read_bytes(request, source) : read_offsets(request, source);
}

}  // namespace pif::lfs
