#include "stream/stream_reader.h"
#include "pif/base/assert.h"

#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace pif::component {
namespace {

// Memory for `size` bytes: on the stack when they fit, so that a small read allocates nothing.
template <std::size_t kOnStack>
class Bounce {
 public:
  explicit Bounce(std::size_t size)
      : heap_(size > kOnStack ? std::make_unique_for_overwrite<std::byte[]>(size) : nullptr) {}
  std::byte* data() { return heap_ ? heap_.get() : stack_; }

 private:
  alignas(64) std::byte stack_[kOnStack];  // not initialised: read() fills it
  std::unique_ptr<std::byte[]> heap_;
};

Status ends_early(const StoredStream& stream, std::uint64_t byte) {
  const std::uint64_t chunk = byte / stream.chunk_bytes;
  return fail(Code::kCorrupt, fmt::format("{}: the file ends at byte {}, before its {} bytes", stream.place(chunk),
                                          byte, stream.length));
}

Status read_exact(const StoredStream& stream, std::uint64_t offset, std::span<std::byte> out) {
  PIF_TRY_VALUE(const std::size_t n, stream.read(*stream.data, offset, out));
  if (n != out.size()) return ends_early(stream, offset + n);
  return {};
}

Status verify_run(const StoredStream& stream, SumReader& sums, std::uint64_t chunk, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++chunk) {
    const std::size_t size = std::min<std::size_t>(stream.chunk_bytes, bytes.size() - at);
    PIF_TRY(sums.verify(chunk, bytes.subspan(at, size)));
    at += size;
  }
  return {};
}

// Part of a chunk: the whole of it is read, for its sum.
Status read_part(const StoredStream& stream, SumReader& sums, std::uint64_t chunk, std::size_t within,
                 std::span<std::byte> out) {
  const std::size_t size = stream.size_of(chunk, stream.length);
  PIF_ASSERT(within + out.size() <= size, chunk, within, out.size(), size);
  Bounce<kChunkBytesAim> bounce(size);
  const std::span<std::byte> bytes(bounce.data(), size);
  PIF_TRY(read_exact(stream, chunk * stream.chunk_bytes, bytes));
  PIF_TRY(sums.verify(chunk, bytes));
  std::memcpy(out.data(), bytes.data() + within, out.size());
  return {};
}

template <std::size_t kLength>
void scatter_of(const std::byte* from, std::uint64_t count, Rows out) {
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(out.base + i * out.stride, from + i * kLength, kLength);
}

// Packed rows to their places.
void scatter(const std::byte* from, std::size_t length, std::uint64_t count, Rows out) {
  switch (length) {
    case 1: return scatter_of<1>(from, count, out);
    case 4: return scatter_of<4>(from, count, out);
    case 8: return scatter_of<8>(from, count, out);
    case 16: return scatter_of<16>(from, count, out);
    case 100: return scatter_of<100>(from, count, out);
    default:
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(out.base + i * out.stride, from + i * length, length);
  }
}

}  // namespace

Result<std::size_t> StoredStream::read(File& from, std::uint64_t offset, std::span<std::byte> out) const {
  if (!only_cached) return from.read(offset, out);
  PIF_TRY_VALUE(const std::size_t n, from.read_cached(offset, out));
  if (n != out.size()) return fail(Code::kBusy, "the disk would have to be waited for");
  return n;
}

Status SumReader::load(std::uint64_t chunk) {
  PIF_ASSERT(chunk < end_ && end_ <= stream_.chunks(), chunk, end_, stream_.chunks());
  const std::uint64_t full = stream_.full_chunks();
  const std::size_t sum_bytes = stream_.sum_bytes();
  std::uint64_t count = std::min<std::uint64_t>(end_ - chunk, sums_.size() / stream_.sum_words());
  const std::size_t stored = chunk < full ? static_cast<std::size_t>(std::min(count, full - chunk)) : 0;
  loaded_end_ = loaded_begin_ = 0;
  if (stored > 0) {
    const auto into = std::as_writable_bytes(std::span(sums_.data(), stored * stream_.sum_words()));
    PIF_TRY_VALUE(const std::size_t n, stream_.read(*stream_.sums, chunk * sum_bytes, into));
    if (n < sum_bytes)
      return fail(Code::kCorrupt, fmt::format("{}: the file of checksums ends before it", stream_.place(chunk)));
    if (n < into.size()) count = n / sum_bytes;  // the chunks before the end can still be checked
    stream_.load_sums(sums_, std::min<std::uint64_t>(stored, count));
  }
  PIF_ASSERT(count > 0 && count <= sums_.size(), chunk, count);
  if (stored < count) sums_[stored] = stream_.tail_sum;
  loaded_begin_ = chunk;
  loaded_end_ = chunk + count;
  return {};
}

Status SumReader::corrupt(std::uint64_t chunk) const {
  return fail(Code::kCorrupt, fmt::format("{}: the bytes do not match their checksum", stream_.place(chunk)));
}

Status check_mapped(const StoredStream& stream, Range bytes, std::span<const std::byte> mapped) {
  if (bytes.empty()) return {};
  const std::uint64_t first = bytes.begin / stream.chunk_bytes, end = (bytes.end - 1) / stream.chunk_bytes + 1;
  const std::uint64_t from = first * stream.chunk_bytes, to = std::min(end * stream.chunk_bytes, stream.length);
  PIF_ASSERT(bytes.end <= stream.length && to <= mapped.size(), bytes.end, stream.length, mapped.size());
  SumReader sums(stream, end);
  return verify_run(stream, sums, first, mapped.subspan(from, to - from));
}

Status read_packed(const StoredStream& stream, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return {};
  const std::uint64_t end = offset + out.size();
  const std::uint64_t chunk_bytes = stream.chunk_bytes;
  PIF_ASSERT(offset < end && end <= stream.length, offset, end, stream.length);
  const std::uint64_t whole_end = end == stream.length ? end : end / chunk_bytes * chunk_bytes;
  const std::uint64_t slice = stream.slice_chunks(kSliceBytes) * chunk_bytes;
  SumReader sums(stream, (end - 1) / chunk_bytes + 1);
  std::uint64_t at = offset;
  while (at < end) {
    const std::uint64_t chunk = at / chunk_bytes;
    const std::uint64_t within = at % chunk_bytes;
    const bool whole = within == 0 && at < whole_end;
    const std::uint64_t stop = whole ? std::min(whole_end, at + slice) : std::min(end, (chunk + 1) * chunk_bytes);
    const auto part = out.subspan(at - offset, stop - at);
    if (whole) {
      PIF_TRY(read_exact(stream, at, part));
      PIF_TRY(verify_run(stream, sums, chunk, part));
    } else {
      PIF_TRY(read_part(stream, sums, chunk, within, part));
    }
    at = stop;
  }
  return {};
}

Status read_long_rows(const StoredStream& stream, Row first, std::uint64_t count, Rows out) {
  if (stream.only_cached) return fail(Code::kBusy, "rows at a distance are not read from memory alone");
  PIF_ASSERT(first + count <= stream.chunks(), first, count, stream.chunks());
  SumReader sums(stream, first + count);
  std::array<Piece, kPieces> pieces;
  const std::uint64_t slice = std::min(kPieces, stream.slice_chunks(kSliceBytes));
  for (std::uint64_t done = 0; done < count;) {
    const std::size_t n = static_cast<std::size_t>(std::min(slice, count - done));
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < n; ++i) {
      pieces[i] = {out.base + (done + i) * out.stride, stream.size_of(first + done + i, stream.length)};
      bytes += pieces[i].size;
    }
    const std::uint64_t offset = (first + done) * stream.chunk_bytes;
    PIF_TRY_VALUE(const std::size_t got, stream.data->read(offset, std::span(pieces.data(), n)));
    if (got != bytes) return ends_early(stream, offset + got);
    for (std::size_t i = 0; i < n; ++i) PIF_TRY(sums.verify(first + done + i, {pieces[i].data, pieces[i].size}));
    done += n;
  }
  return {};
}

Status read_short_rows(const StoredStream& stream, Row first, std::uint64_t count, Rows out) {
  const std::uint64_t length = stream.row_bytes;
  PIF_ASSERT(count > 0 && length > 0 && stream.chunk_bytes % length == 0, count, length, stream.chunk_bytes);
  const std::uint64_t rows_per_chunk = stream.chunk_bytes / length;
  const std::uint64_t chunk_end = (first + count - 1) / rows_per_chunk + 1;
  const std::size_t slice = stream.slice_chunks(kBounceBytes);
  SumReader sums(stream, chunk_end);
  Bounce<kBounceBytes> bounce(slice * stream.chunk_bytes);
  for (std::uint64_t chunk = first / rows_per_chunk; chunk < chunk_end; chunk += slice) {
    const std::uint64_t stop = std::min<std::uint64_t>(chunk_end, chunk + slice);
    const std::uint64_t begin_byte = chunk * stream.chunk_bytes;
    const std::uint64_t end_byte = std::min(stream.length, stop * stream.chunk_bytes);
    const std::span<std::byte> bytes(bounce.data(), end_byte - begin_byte);
    PIF_TRY(read_exact(stream, begin_byte, bytes));
    PIF_TRY(verify_run(stream, sums, chunk, bytes));

    const Row from = std::max(first, chunk * rows_per_chunk);
    const Row to = std::min(first + count, stop * rows_per_chunk);
    PIF_ASSERT(first <= from && from < to, first, from, to);
    const Row whole = std::min(to, stream.length / length);  // rows before it have all their bytes
    const Rows place{out.base + (from - first) * out.stride, out.stride};
    const std::byte* source = bytes.data() + (from * length - begin_byte);
    if (from < whole) scatter(source, length, whole - from, place);
    if (whole < to)
      std::memcpy(out.base + (whole - first) * out.stride, bytes.data() + (whole * length - begin_byte),
                  stream.length - whole * length);
  }
  return {};
}

void check_stream(const StoredStream& stream, std::size_t lines_max, std::vector<std::string>& lines) {
  const auto note = [&](std::string line) {
    if (lines.size() < lines_max) lines.push_back(std::move(line));
  };
  const std::size_t slice = stream.slice_chunks(1u << 20);
  const auto buffer =
      std::make_unique_for_overwrite<std::byte[]>(std::min<std::uint64_t>(slice * stream.chunk_bytes, stream.length));
  for (std::uint64_t chunk = 0; chunk < stream.chunks() && lines.size() < lines_max; chunk += slice) {
    const std::uint64_t stop = std::min<std::uint64_t>(stream.chunks(), chunk + slice);
    const std::uint64_t begin = chunk * stream.chunk_bytes;
    const std::span<std::byte> bytes(buffer.get(), std::min(stream.length, stop * stream.chunk_bytes) - begin);
    const auto got = stream.data->read(begin, bytes);
    if (!got) {
      note(fmt::format("{} and the next {}: {}", stream.place(chunk), stop - chunk - 1, got.error().text));
      continue;
    }
    SumReader sums(stream, stop);
    for (std::uint64_t c = chunk; c < stop && lines.size() < lines_max; ++c) {
      const std::size_t at = (c - chunk) * stream.chunk_bytes;
      const std::size_t size = stream.size_of(c, stream.length);
      const Status status =
          at + size <= *got ? sums.verify(c, bytes.subspan(at, size)) : ends_early(stream, begin + *got);
      if (!status) note(status.error().text);
    }
  }
}

}  // namespace pif::component
