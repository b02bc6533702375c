#include "matrix/row_source.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/tool/read_ahead.h"

namespace pif::transpose {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLongPiece = 4096;  // from here on a read of its own costs less than the bytes that it saves

// Long rows not at a power of two, or many of them would want the same places in the cache.
std::size_t pitch_for(std::size_t bytes) {
  return bytes < kLongPiece ? bytes : (bytes + kLine - 1) / kLine * kLine + kLine;
}

}  // namespace

void RowSource::begin_stripe(Range bytes) {
  ++stripes_;
  bytes_ = bytes;
  next_ = rows_.begin;
  pitch_ = pitch_for(piece_bytes());
}

bool RowSource::reads_whole_rows() const {
  return stripes_ == 1 || input_.format().record_length < piece_bytes() + kLongPiece;
}

Result<matrix::ConstRows> RowSource::next(std::uint64_t count) {
  memory_.resize(std::max<std::size_t>(memory_.size(), count * pitch_));
  PIF_TRY(read(next_, count, memory_.data()));
  next_ += count;
  return matrix::ConstRows{memory_.data(), pitch_};
}

Status RowSource::read(Row first, std::uint64_t count, std::byte* to) {
  if (piece_bytes() == input_.format().record_length) return read_whole(first, count, to);
  return reads_whole_rows() ? cut_from_whole(first, count, to) : read_pieces(first, count, to);
}

Status RowSource::read_whole(Row first, std::uint64_t count, std::byte* to) {
  bytes_read_ += count * piece_bytes();
  return input_.reader().read_rows(first, count, {to, pitch_});
}

Status RowSource::cut_from_whole(Row first, std::uint64_t count, std::byte* to) {
  const std::uint64_t length = input_.format().record_length;
  const std::uint64_t at_once = std::max<std::uint64_t>(tool::kBatchBytes / length, 1);
  for (std::uint64_t done = 0, some = 0; done < count; done += some) {
    some = std::min(at_once, count - done);
    whole_.resize(std::max<std::size_t>(whole_.size(), some * length));
    PIF_TRY(input_.reader().read_rows(first + done, some, {whole_.data(), length}));
    bytes_read_ += some * length;
    const std::byte* from = whole_.data() + bytes_.begin;
    for (std::uint64_t i = 0; i < some; ++i, from += length, to += pitch_) std::memcpy(to, from, piece_bytes());
  }
  return {};
}

// From the page cache, where it can be mapped: a call for each row would take longer than its bytes.
Status RowSource::read_pieces(Row first, std::uint64_t count, std::byte* to) {
  PIF_TRY(map());
  const std::uint64_t length = input_.format().record_length;
  read_ahead(first, count);
  for (Row row = first; row < first + count; ++row, to += pitch_) {
    const std::uint64_t at = row * length + bytes_.begin;
    if (!mapped_.empty()) {
      std::memcpy(to, mapped_.bytes().data() + at, piece_bytes());
      continue;
    }
    PIF_TRY_VALUE(const std::size_t got, input_.files().data->read(at, std::span(to, piece_bytes())));
    if (got < piece_bytes())
      return fail(Code::kCorrupt,
                  fmt::format("{}: the component ends in row {}: run pif fsck", input_.file().path, row));
  }
  bytes_read_ += count * piece_bytes();
  return {};
}

void RowSource::read_ahead(Row first, std::uint64_t count) const {
  if (mapped_.empty()) return;
  tool::ReadAhead ahead;
  for (Row row = first; row < first + count; ++row)
    ahead.add(mapped_.bytes().subspan(row * input_.format().record_length + bytes_.begin, piece_bytes()));
}

Status RowSource::map() {
  if (is_mapped_) return {};
  is_mapped_ = true;
  auto mapped = input_.map();
  if (mapped) mapped_ = std::move(*mapped);
  return mapped || mapped.error().code == Code::kUnsupported ? Status() : fail(std::move(mapped.error()));
}

}  // namespace pif::transpose
