#include "pif/component/stretch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "rows/variable_rows.h"
#include "stream/stream_writer.h"

namespace pif::component {
namespace {

// A stretch of one stream. Its first bytes may belong to a chunk that stretches before it began.
class StreamStretch {
 public:
  StreamStretch(const Stream& stream, std::uint64_t begin)
      : stream_(stream),
        boundary_((begin + stream.chunk_bytes - 1) / stream.chunk_bytes * stream.chunk_bytes),
        end_(begin),
        body_(stream, boundary_, 0) {}

  [[nodiscard]] Status append(std::span<const std::byte> bytes) {
    const auto head = bytes.first(std::min<std::uint64_t>(bytes.size(), boundary_ - std::min(end_, boundary_)));
    head_.insert(head_.end(), head.begin(), head.end());
    const auto rest = bytes.subspan(head.size());
    PIF_ASSERT(rest.empty() || end_ + head.size() >= boundary_, end_, head.size(), boundary_);
    PIF_TRY(body_.write(end_ + head.size(), {rest.data(), rest.size(), rest.size()}, rest.size()));
    end_ += bytes.size();
    return {};
  }

  // open: bytes of the chunk that is not whole; before this stretch, and then after it.
  [[nodiscard]] Status finish(std::vector<std::byte>& open) {
    if (auto finished = body_.finish(); !finished) return fail(std::move(finished.error()));
    open.insert(open.end(), head_.begin(), head_.end());
    if (end_ < boundary_) return {};
    if (!open.empty()) PIF_TRY(write_whole(open));
    open.resize(end_ % stream_.chunk_bytes);
    return open.empty() ? Status() : body_.peek(end_ - open.size(), open);
  }

 private:
  Status write_whole(std::span<const std::byte> bytes) const {
    PIF_ASSERT(bytes.size() == stream_.chunk_bytes && boundary_ > 0, bytes.size(), stream_.chunk_bytes, boundary_);
    const std::uint64_t chunk = boundary_ / stream_.chunk_bytes - 1;
    PIF_TRY(stream_.data->write(chunk * stream_.chunk_bytes, bytes));
    const std::uint64_t sum = stream_.sum(chunk, bytes);
    return stream_.write_sums(chunk, {&sum, 1});
  }

  const Stream stream_;
  const std::uint64_t boundary_;  // where its first chunk begins
  std::uint64_t end_;
  std::vector<std::byte> head_;  // what it has before that
  StreamWriter body_;
};

std::uint64_t index_bytes(std::uint64_t rows) { return rows * kEndBytes; }

// The sum of the stream's last chunk, which is not whole, as a Tail has it.
Result<std::uint64_t> end_stream(const Stream& stream, std::uint64_t length, std::span<const std::byte> open) {
  if (open.empty()) return std::uint64_t{0};
  PIF_ASSERT(open.size() == length % stream.chunk_bytes, open.size(), length, stream.chunk_bytes);
  PIF_TRY(stream.data->write(length - open.size(), open));
  return stream.with_stamp_0(stream.sum(length / stream.chunk_bytes, open));
}

}  // namespace

Status check_seam(const Shape& shape, const Seam& seam) {
  PIF_TRY(validate(shape, {seam.rows, seam.bytes, 0, 0}));
  const bool fixed = shape.format.is_fixed();
  const std::uint64_t index = fixed ? 0 : index_bytes(seam.rows) % kIndexChunkBytes;
  const bool rows_fit = !fixed || seam.bytes == seam.rows * shape.format.record_length;
  if (rows_fit && seam.data.size() == seam.bytes % shape.chunk_bytes && seam.index.size() == index) return {};
  return fail(Code::kInvalid,
              fmt::format("file {}: {} rows and {} bytes cannot end with {} and {} bytes of a chunk", shape.file.value,
                          seam.rows, seam.bytes, seam.data.size(), seam.index.size()));
}

struct StretchWriter::Impl {
  Impl(const Shape& of, std::uint64_t rows_before, std::uint64_t bytes_before, Files& files)
      : shape(of),
        first_row(rows_before),
        first_byte(bytes_before),
        rows(rows_before),
        bytes(bytes_before),
        data(Stream::data_of(of, files), bytes_before) {
    if (!of.format.is_fixed()) index.emplace(Stream::index_of(of, files), index_bytes(rows_before));
  }

  [[nodiscard]] Status check(std::span<const std::uint32_t> lengths, std::span<const std::byte> in) const;

  const Shape shape;
  const std::uint64_t first_row, first_byte;
  std::uint64_t rows, bytes;
  StreamStretch data;
  std::optional<StreamStretch> index;  // variable only
};

Status StretchWriter::Impl::check(std::span<const std::uint32_t> lengths, std::span<const std::byte> in) const {
  if (!shape.format.is_fixed()) return check_rows(shape.file, bytes, lengths, in);
  if (in.size() > kLengthMax - bytes)
    return fail(Code::kTooLarge, fmt::format("file {}: the component would be too long", shape.file.value));
  if (lengths.empty() && in.size() % shape.format.record_length == 0) return {};
  return fail(Code::kInvalid, fmt::format("{} bytes are no rows of {}", in.size(), shape.format.record_length));
}

StretchWriter::StretchWriter(const Shape& shape, std::uint64_t rows, std::uint64_t bytes, Files& files)
    : impl_(std::make_unique<Impl>(shape, rows, bytes, files)) {}
StretchWriter::~StretchWriter() = default;
StretchWriter::StretchWriter(StretchWriter&&) noexcept = default;

Status StretchWriter::append_rows(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  PIF_TRY(impl_->check(lengths, data));
  PIF_TRY(impl_->data.append(data));
  if (impl_->index)
    PIF_TRY(
        put_ends(impl_->bytes, lengths, [&](std::span<const std::byte> ends) { return impl_->index->append(ends); }));
  impl_->rows += impl_->index ? lengths.size() : data.size() / impl_->shape.format.record_length;
  impl_->bytes += data.size();
  PIF_ASSERT(impl_->rows >= impl_->first_row && impl_->bytes >= impl_->first_byte, impl_->rows, impl_->bytes);
  return {};
}

std::uint64_t StretchWriter::rows() const { return impl_->rows; }
std::uint64_t StretchWriter::bytes() const { return impl_->bytes; }

Status StretchWriter::finish(Seam& seam) {
  PIF_TRY(check_seam(impl_->shape, seam));
  if (seam.rows != impl_->first_row || seam.bytes != impl_->first_byte)
    return fail(Code::kInvalid,
                fmt::format("file {}: a stretch begins at row {}, byte {}, and the one before ends at row {}, byte {}",
                            impl_->shape.file.value, impl_->first_row, impl_->first_byte, seam.rows, seam.bytes));
  PIF_ASSERT(impl_->index.has_value() != impl_->shape.format.is_fixed(), impl_->shape.file.value);
  PIF_TRY(impl_->data.finish(seam.data));
  if (impl_->index) PIF_TRY(impl_->index->finish(seam.index));
  seam.rows = impl_->rows;
  seam.bytes = impl_->bytes;
  return {};
}

Result<Tail> end_at(const Shape& shape, Files& files, const Seam& seam) {
  PIF_TRY(check_seam(shape, seam));
  Tail tail{seam.rows, seam.bytes, 0, 0};
  PIF_TRY_VALUE(tail.data_sum, end_stream(Stream::data_of(shape, files), seam.bytes, seam.data));
  if (!shape.format.is_fixed()) {
    PIF_TRY_VALUE(tail.index_sum, end_stream(Stream::index_of(shape, files), index_bytes(seam.rows), seam.index));
  }
  return tail;
}

}  // namespace pif::component
