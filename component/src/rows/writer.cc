#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/component.h"
#include "rows/variable_rows.h"
#include "stream/stream_writer.h"

namespace pif::component {

struct Writer::Impl {
  Impl(const Shape& of, const Tail& tail, Files& files)
      : shape(of), data(Stream::data_of(of, files), tail.bytes, tail.data_sum), rows(tail.rows), bytes(tail.bytes) {
    if (!of.format.is_fixed())
      index.emplace(Stream::index_of(of, files), tail.rows * sizeof(std::uint64_t), tail.index_sum);
  }

  const Shape shape;
  StreamWriter data;
  std::optional<StreamWriter> index;  // variable only
  // Variable only: what has been appended, which is less than the streams hold after an append that failed.
  std::uint64_t rows;
  std::uint64_t bytes;
  std::optional<Error> broken_off;  // the last append_rows, which is neither repeated nor undone yet

  Status append(std::span<const std::uint32_t> lengths, std::span<const std::byte> data);
  Status check_fixed(Row first, std::uint64_t count, std::uint32_t last_bytes) const;
  Status append_ends(std::span<const std::uint32_t> lengths);
};

Status Writer::Impl::check_fixed(Row first, std::uint64_t count, std::uint32_t last_bytes) const {
  const std::uint64_t length = shape.format.record_length;
  if (!shape.format.is_fixed())
    return fail(Code::kInvalid, fmt::format("file {} has variable records: they are appended", shape.file.value));
  if (last_bytes > length)
    return fail(Code::kInvalid, fmt::format("a row of {} bytes in a file of {}-byte records", last_bytes, length));
  if (first > kLengthMax / length || count > kLengthMax / length - first)
    return fail(Code::kTooLarge,
                fmt::format("file {}: no component can have {} rows from row {}", shape.file.value, count, first));
  const bool shorter = last_bytes != 0 && last_bytes < length;
  if (shorter && (first + count - 1) * length + last_bytes < data.length())
    return fail(Code::kInvalid,
                fmt::format("file {}, row {}: only the last row may be short", shape.file.value, first + count - 1));
  return {};
}

Status Writer::Impl::append_ends(std::span<const std::uint32_t> lengths) {
  PIF_ASSERT(index.has_value(), shape.file.value, rows);
  std::uint64_t at = rows * kEndBytes;
  return put_ends(bytes, lengths, [&](std::span<const std::byte> ends) {
    return index->write(std::exchange(at, at + ends.size()), {ends.data(), ends.size(), ends.size()}, ends.size());
  });
}

Status Writer::Impl::append(std::span<const std::uint32_t> lengths, std::span<const std::byte> in) {
  PIF_ASSERT(in.size() <= kLengthMax - bytes, bytes, in.size());
  PIF_TRY(data.write(bytes, {in.data(), in.size(), in.size()}, in.size()));
  PIF_TRY(append_ends(lengths));
  rows += lengths.size();
  bytes += in.size();
  return {};
}

Writer::Writer(const Shape& shape, const Tail& tail, Files& files)
    : impl_(std::make_unique<Impl>(shape, tail, files)) {}
Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

Status Writer::write_rows(Row first, std::uint64_t count, ConstRows in, std::uint32_t last_bytes) {
  PIF_TRY(validate(impl_->shape));
  if (count == 0) return {};
  PIF_TRY(impl_->check_fixed(first, count, last_bytes));
  const std::uint64_t length = impl_->shape.format.record_length;
  if (count > 1 && in.stride < length)
    return fail(Code::kInvalid, fmt::format("rows of {} bytes cannot be {} bytes apart", length, in.stride));
  const std::uint64_t size = (count - 1) * length + (last_bytes == 0 ? length : last_bytes);
  PIF_ASSERT(size > 0 && first * length <= kLengthMax - size, first, count, size);
  return impl_->data.write(first * length, {in.base, length, count == 1 ? length : in.stride}, size);
}

Status Writer::append_rows(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  PIF_TRY(validate(impl_->shape));
  if (impl_->shape.format.is_fixed())
    return fail(Code::kInvalid,
                fmt::format("file {} has fixed records: they have row numbers", impl_->shape.file.value));
  PIF_TRY(check_rows(impl_->shape.file, impl_->bytes, lengths, data));
  auto appended = impl_->append(lengths, data);
  impl_->broken_off.reset();
  if (!appended) impl_->broken_off = appended.error();
  return appended;
}

Status Writer::truncate(Row row) {
  PIF_TRY(validate(impl_->shape));
  if (row > rows())
    return fail(Code::kInvalid,
                fmt::format("file {}: cannot shorten {} rows to {}", impl_->shape.file.value, rows(), row));
  if (impl_->shape.format.is_fixed())
    return impl_->data.truncate(row == rows() ? bytes() : row * impl_->shape.format.record_length);
  std::uint64_t end = 0;
  if (row > 0) PIF_TRY(impl_->index->peek((row - 1) * sizeof(end), std::as_writable_bytes(std::span(&end, 1))));
  PIF_TRY(impl_->index->truncate(row * sizeof(end)));
  impl_->rows = row;
  impl_->bytes = end;
  PIF_TRY(impl_->data.truncate(end));
  impl_->broken_off.reset();
  return {};
}

Result<Tail> Writer::finish() {
  PIF_TRY(validate(impl_->shape));
  if (impl_->broken_off) return fail(*impl_->broken_off);
  Tail tail{rows(), bytes(), 0, 0};
  PIF_TRY_VALUE(tail.data_sum, impl_->data.finish());
  if (impl_->index) {
    PIF_TRY_VALUE(tail.index_sum, impl_->index->finish());
  }
  return tail;
}

std::uint64_t Writer::rows() const {
  if (impl_->index) return impl_->rows;
  return fixed_file_length(impl_->shape.format.record_length, impl_->data.length()).records;
}

std::uint64_t Writer::bytes() const { return impl_->index ? impl_->bytes : impl_->data.length(); }

}  // namespace pif::component
