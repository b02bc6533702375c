#include "scrub/scrub_chunks.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"

namespace pif::lfs {
namespace {

using component::kIndexChunkBytes;
using component::kIndexStream;

constexpr std::size_t kEndBytes = sizeof(std::uint64_t);
constexpr std::size_t kUnknownMax = 4096;  // bad chunks of unknown bytes that are reported at once

// What a chunk's sum must be, of a partial last one as the catalogue has it.
std::uint64_t sum_of(const component::Shape& shape, const BadChunk& chunk) {
  return partial_sum(shape, chunk.stream, chunk.chunk, chunk.bytes);
}

bool is_whole(const component::Shape& shape, const BadChunk& chunk) {
  return chunk.place.size() == (chunk.stream == ScrubStream::kData ? shape.chunk_bytes : kIndexChunkBytes);
}

}  // namespace

std::uint64_t partial_sum(const component::Shape& shape, ScrubStream stream, std::uint64_t chunk,
                          std::span<const std::byte> bytes) {
  if (stream == ScrubStream::kData) return shape.data_sum(chunk, bytes);
  return chunk_sum(shape.file, kIndexStream, chunk, bytes);
}

ChunkCheck::ChunkCheck(ScrubStream stream, const component::Shape& shape, const component::Tail& tail,
                       component::Files& files)
    : stream_(stream),
      shape_(shape),
      tail_(tail),
      files_(files),
      reader_(shape, tail, files),
      chunk_bytes_(stream == ScrubStream::kData ? shape.chunk_bytes : kIndexChunkBytes),
      size_(stream == ScrubStream::kData ? tail.bytes : tail.rows * kEndBytes) {
  PIF_ASSERT(chunk_bytes_ > 0 && (stream == ScrubStream::kData || !shape.format.is_fixed()), shape.file.value);
}

std::uint64_t ChunkCheck::chunk_size() const {
  return std::min(chunk_bytes_, size_ - at_ / chunk_bytes_ * chunk_bytes_);
}

void ChunkCheck::add(std::span<const std::byte> bytes) {
  while (!bytes.empty() && at_ < size_) {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), room()));
    bytes_.insert(bytes_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    advance(part.size());
  }
}

void ChunkCheck::skip(std::uint64_t count) {
  while (count > 0 && at_ < size_) {
    const std::uint64_t part = std::min(count, room());
    unknown_.push_back({bytes_.size(), bytes_.size() + part});
    bytes_.resize(bytes_.size() + part);
    count -= part;
    advance(part);
  }
}

void ChunkCheck::skip_rest() {
  PIF_ASSERT(published_ == size_ && at_ <= size_, at_, published_, size_);
  published_ = at_;
  skip(size_ - at_);
}

void ChunkCheck::skip_to(std::uint64_t place) {
  PIF_ASSERT(at_ == 0 && place % chunk_bytes_ == 0 && place <= size_, at_, place, size_);
  at_ = place;
}

void ChunkCheck::advance(std::uint64_t count) {
  PIF_ASSERT(count > 0 && bytes_.size() <= chunk_size(), count, bytes_.size());
  if (bytes_.size() == chunk_size()) judge();
  at_ += count;
}

Status ChunkCheck::read(Range place) {
  own_.resize(place.size());
  return stream_ == ScrubStream::kData ? reader_.read_bytes(place.begin, own_) : read_index(place);
}

// The reader reads ends only together with the one in front of them.
Status ChunkCheck::read_index(Range place) {
  const std::uint64_t chunk = place.begin / chunk_bytes_;
  const auto broken = [&](std::string_view why) {
    return fail(Code::kCorrupt, fmt::format("file {}, chunk {} of .idx: {}", shape_.file.value, chunk, why));
  };
  PIF_TRY_VALUE(const std::size_t n, files_.index->read(place.begin, own_));
  if (n != own_.size()) return broken("the file ends there");
  std::uint64_t sum = tail_.index_sum;
  if (own_.size() == chunk_bytes_) {
    PIF_TRY_VALUE(const std::size_t got,
                  files_.index_sums->read(chunk * sizeof sum, std::as_writable_bytes(std::span(&sum, 1))));
    if (got != sizeof sum) return broken("its checksum is not there");
  }
  if (chunk_sum(shape_.file, kIndexStream, chunk, own_) != sum) return broken("the bytes do not match their checksum");
  return {};
}

bool ChunkCheck::is_as_expected() const {
  PIF_ASSERT(own_.size() == bytes_.size(), own_.size(), bytes_.size());
  std::uint64_t from = 0;
  const auto same = [&](std::uint64_t end) {
    return std::equal(own_.begin() + static_cast<std::ptrdiff_t>(from), own_.begin() + static_cast<std::ptrdiff_t>(end),
                      bytes_.begin() + static_cast<std::ptrdiff_t>(from));
  };
  for (const Range& unknown : unknown_) {
    if (!same(unknown.begin)) return false;
    from = unknown.end;
  }
  return same(bytes_.size());
}

// The chunk is complete.
void ChunkCheck::judge() {
  const std::uint64_t chunk = at_ / chunk_bytes_;
  const Range place{chunk * chunk_bytes_, chunk * chunk_bytes_ + bytes_.size()};
  PIF_ASSERT(!place.empty() && place.end <= size_, place.begin, place.end, size_);
  const Status read_well = read(place);
  if (!read_well || !is_as_expected()) note_bad(place, read_well);
  bytes_.clear();
  unknown_.clear();
}

void ChunkCheck::note_bad(Range place, const Status& read_well) {
  const std::uint64_t published = std::clamp(published_, place.begin, place.end) - place.begin;
  if (published == 0 && !bad_.empty() && bad_.back().published == 0) {
    bad_.back().place.end = place.end;
    return;
  }
  const bool is_known = unknown_.empty() || unknown_.front().begin >= published;
  if (!is_known && bad_.size() >= kUnknownMax) return;
  BadChunk& bad = bad_.emplace_back();
  bad.stream = stream_;
  bad.chunk = place.begin / chunk_bytes_;
  bad.place = place;
  bad.sum_holds = read_well.has_value();
  bad.published = published;
  bad.is_known = is_known;
  bad.why = read_well ? "its rows are not those of which the others keep the parity" : read_well.error().text;
  if (!is_known) return;
  bytes_.resize(published);
  bad.bytes = std::move(bytes_);
}

std::vector<BadChunk> ChunkCheck::take_bad() { return std::exchange(bad_, {}); }

namespace {

Status write_chunk(const component::Shape& shape, component::Files& files, const BadChunk& chunk) {
  const std::uint64_t sum = sum_of(shape, chunk);
  const std::span<const std::byte> bytes = chunk.bytes;
  if (chunk.stream == ScrubStream::kData) {
    PIF_TRY(files.data->write(chunk.place.begin, bytes));
    return is_whole(shape, chunk) ? component::write_sums(shape, files, chunk.chunk, std::span(&sum, 1)) : Status();
  }
  PIF_TRY(files.index->write(chunk.place.begin, bytes));
  if (!is_whole(shape, chunk)) return {};
  return files.index_sums->write(chunk.chunk * sizeof sum, std::as_bytes(std::span(&sum, 1)));
}

}  // namespace

Status rewrite_chunks(const component::Shape& shape, const component::Tail& tail, component::Files& files,
                      std::span<const BadChunk> chunks) {
  for (const BadChunk& chunk : chunks) {
    PIF_ASSERT(chunk.is_known && !chunk.has_rest() && chunk.bytes.size() == chunk.place.size(), chunk.chunk,
               chunk.bytes.size());
    const std::uint64_t kept = chunk.stream == ScrubStream::kData ? tail.data_sum : tail.index_sum;
    if (!is_whole(shape, chunk) && sum_of(shape, chunk) != kept)
      return fail(Code::kCorrupt, "the last chunk as the others have it does not match the sum in the catalogue");
  }
  for (const BadChunk& chunk : chunks) PIF_TRY(write_chunk(shape, files, chunk));
  PIF_TRY(component::sync(files));
  for (const BadChunk& chunk : chunks) {
    ChunkCheck check(chunk.stream, shape, tail, files);
    check.skip_to(chunk.place.begin);
    check.add(chunk.bytes);
    if (!check.take_bad().empty()) return fail(Code::kCorrupt, "what was written does not read back: replace the disk");
  }
  return {};
}

}  // namespace pif::lfs
