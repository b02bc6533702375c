#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/parity.h"

namespace pif::component {
namespace {

// Measured in the page cache: to read a row by itself costs as much as to read and check another 8 KiB. It is more
// here, because a disk reads ahead for who reads on.
constexpr std::uint64_t kGapBytes = 16u << 10;
constexpr std::uint64_t kSpanBytes = 128u << 10;  // read in one go with what lies between rows: stays in the cache
constexpr std::uint64_t kRowsMax = 64u << 10;     // of one call
constexpr std::uint64_t kEndsMax = 4096;          // read in one go

class ReaderSource final : public RowSource {
 public:
  ReaderSource(const Shape& shape, const Reader& reader) : shape_(shape), reader_(reader) {}

  Status read(Row first, std::uint64_t count, std::uint64_t step, PackedRows& out) override {
    PIF_ASSERT(step >= 1, step);
    out.lengths.clear();
    starts_.clear();
    if (count > 0) {
      const Tail& tail = reader_.tail();
      PIF_TRY(check_tail(shape_, tail));
      if (first >= tail.rows || count - 1 > (tail.rows - 1 - first) / step)
        return fail(Code::kEndOfFile,
                    fmt::format("file {}: {} rows from row {} on, each {}th, are not all there: the component has {}",
                                shape_.file.value, count, first, step, tail.rows));
      if (shape_.format.is_fixed())
        place_fixed(first, std::min(count, kRowsMax), step, out);
      else
        PIF_TRY(place_variable(first, std::min(count, kRowsMax), step, out));
    }
    return fetch(out);
  }

 private:
  void place_fixed(Row first, std::uint64_t count, std::uint64_t step, PackedRows& out) {
    const std::uint64_t length = shape_.format.record_length;
    count = std::min<std::uint64_t>(count, std::max<std::uint64_t>(1, kSourceBytes / length));
    const std::uint64_t end = reader_.tail().bytes;
    for (std::uint64_t i = 0; i < count; ++i) {
      starts_.push_back((first + i * step) * length);
      out.lengths.push_back(static_cast<std::uint32_t>(std::min(length, end - starts_.back())));
    }
  }

  Status place_variable(Row first, std::uint64_t count, std::uint64_t step, PackedRows& out) {
    const std::uint64_t batch = std::max<std::uint64_t>(1, kEndsMax / step);
    std::uint64_t total = 0;
    while (starts_.size() < count) {
      const std::uint64_t n = std::min(batch, count - starts_.size());
      const std::uint64_t rows = (n - 1) * step + 1;
      ends_.resize(rows + 1);
      PIF_TRY(reader_.read_ends(first + starts_.size() * step, rows, ends_));
      for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t begin = ends_[i * step], length = ends_[i * step + 1] - begin;
        if (length > kRecordLengthMax)
          return fail(Code::kCorrupt, fmt::format("file {}, row {}: {} bytes are more than a record may have",
                                                  shape_.file.value, first + starts_.size() * step, length));
        total += length;
        if (total > kSourceBytes && !starts_.empty()) return {};
        starts_.push_back(begin);
        out.lengths.push_back(static_cast<std::uint32_t>(length));
      }
    }
    return {};
  }

  // Reads the rows that have been placed.
  Status fetch(PackedRows& out) {
    PIF_ASSERT(starts_.size() == out.lengths.size(), starts_.size(), out.lengths.size());
    std::size_t total = 0;
    for (const std::uint32_t length : out.lengths) total += length;
    out.bytes.resize(total);
    std::size_t at = 0;
    for (std::size_t i = 0; i < starts_.size();) {
      std::uint64_t end = starts_[i] + out.lengths[i];
      std::size_t bytes = out.lengths[i], next = i + 1;
      for (; next < starts_.size(); ++next) {
        const std::uint64_t gap = starts_[next] - end, after = starts_[next] + out.lengths[next];
        const bool dense = end - starts_[i] == bytes && gap == 0;
        if (!dense && (gap >= kGapBytes || after - starts_[i] > kSpanBytes)) break;
        end = after;
        bytes += out.lengths[next];
      }
      PIF_TRY(read_span({starts_[i], end}, i, next, std::span(out.bytes).subspan(at, bytes), out.lengths));
      at += bytes;
      i = next;
    }
    return {};
  }

  // Rows [from, to) of those placed, which lie in `place`.
  Status read_span(Range place, std::size_t from, std::size_t to, std::span<std::byte> out,
                   std::span<const std::uint32_t> lengths) {
    if (place.size() == out.size()) return reader_.read_bytes(place.begin, out);
    PIF_ASSERT(from < to && to <= starts_.size() && out.size() < place.size(), from, to, out.size(), place.size());
    span_.resize(std::max<std::size_t>(span_.size(), place.size()));
    PIF_TRY(reader_.read_bytes(place.begin, std::span(span_).first(place.size())));
    std::byte* at = out.data();
    for (std::size_t i = from; i < to; ++i) {
      if (lengths[i] > 0) std::memcpy(at, span_.data() + (starts_[i] - place.begin), lengths[i]);
      at += lengths[i];
    }
    return {};
  }

  const Shape shape_;
  const Reader& reader_;
  std::vector<std::uint64_t> starts_;  // in .dat, of the rows of this call
  std::vector<std::uint64_t> ends_;    // of rows and what lies between them
  std::vector<std::byte> span_;        // the same of bytes
};

}  // namespace

std::unique_ptr<RowSource> make_row_source(const Shape& shape, const Reader& reader) {
  return std::make_unique<ReaderSource>(shape, reader);
}

}  // namespace pif::component
