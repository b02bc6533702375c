#include "codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "stored.h"

namespace pif::compress {
namespace {

// What every frame of zstd begins with; stored records leave it away.
constexpr std::array kMagic{std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f}, std::byte{0xfd}};
static_assert(ZSTD_MAGICNUMBER == 0xFD2FB528);
constexpr std::size_t kPlaceBytes = 1;
constexpr std::size_t kMostAtOnce = 128u << 10;  // by which a record whose length is not known grows

using Check = std::array<std::byte, kCheckBytes>;

Check check_of(std::span<const std::byte> record) {
  const std::uint64_t hash = XXH3_64bits(record.data(), record.size());
  return {std::byte(hash & 0xff), std::byte(hash >> 8 & 0xff)};
}

tl::unexpected<Error> damaged(std::string_view why) { return fail(Code::kCorrupt, fmt::format("is damaged: {}", why)); }

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
T* made(T* object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

void must(std::size_t outcome) { PIF_ASSERT(!ZSTD_isError(outcome), outcome); }

}  // namespace

Result<Dictionary> Dictionary::make(const std::string& bytes, std::optional<int> level) {
  Dictionary dictionary;
  if (bytes.empty()) return dictionary;
  if (level)
    dictionary.encoding_.reset(ZSTD_createCDict(bytes.data(), bytes.size(), *level));
  else
    dictionary.decoding_.reset(ZSTD_createDDict(bytes.data(), bytes.size()));
  if (!dictionary.encoding_ && !dictionary.decoding_) return fail(Code::kCorrupt, "the dictionary cannot be read");
  return dictionary;
}

// ---- encoding -------------------------------------------------------------------------------------------------------

Encoder::Encoder(const Dictionary& dictionary, int level) : context_(made(ZSTD_createCCtx())) {
  must(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level));
  must(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_dictIDFlag, 0));
  must(ZSTD_CCtx_refCDict(context_.get(), dictionary.encoding()));
}

// What does not become shorter than the longest record there may be is kept as it is, if it is so long itself: no other
// stored record is.
Status Encoder::keep(std::span<const std::byte> record, std::size_t begin, std::vector<std::byte>& out) const {
  if (out.size() - begin < kRecordLengthMax) return {};
  if (record.size() != kRecordLengthMax)
    return fail(Code::kUnsupported, fmt::format("has {} bytes that do not become fewer, and with what zstd adds it is "
                                                "longer than a record may be ({} bytes)",
                                                record.size(), kRecordLengthMax));
  out.resize(begin);
  append(out, record);
  return {};
}

Status Encoder::add(std::span<const std::byte> record, std::vector<std::byte>& out) {
  if (record.empty()) return {};
  frame_.resize(std::max(frame_.size(), ZSTD_compressBound(record.size())));
  const std::size_t size = ZSTD_compress2(context_.get(), frame_.data(), frame_.size(), record.data(), record.size());
  must(size);
  const std::size_t begin = out.size();
  append(out, check_of(record));
  append(out, std::span(frame_).first(size).subspan(kMagic.size()));
  return keep(record, begin, out);
}

void Encoder::begin_chain(std::uint64_t bytes) {
  must(ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only));
  must(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_contentSizeFlag, 0));
  must(ZSTD_CCtx_setPledgedSrcSize(context_.get(), bytes));
  place_ = 0;
  has_begun_frame_ = false;
}

Status Encoder::add_to_chain(std::span<const std::byte> record, bool is_last, std::vector<std::byte>& out) {
  PIF_ASSERT(place_ < kChainMax, place_);
  frame_.resize(std::max(frame_.size(), ZSTD_compressBound(record.size()) + ZSTD_CStreamOutSize()));
  ZSTD_inBuffer in{record.data(), record.size(), 0};
  ZSTD_outBuffer frame{frame_.data(), frame_.size(), 0};
  const std::size_t left = ZSTD_compressStream2(context_.get(), &frame, &in, is_last ? ZSTD_e_end : ZSTD_e_flush);
  PIF_ASSERT(left == 0 && in.pos == in.size, left, in.pos);
  const std::size_t begin = out.size();
  append(out, check_of(record));
  out.push_back(std::byte{place_});
  const bool begins_frame = !has_begun_frame_ && frame.pos > 0;
  append(out, std::span(frame_).first(frame.pos).subspan(begins_frame ? kMagic.size() : 0));
  has_begun_frame_ = has_begun_frame_ || begins_frame;
  ++place_;
  return keep(record, begin, out);
}

// ---- decoding -------------------------------------------------------------------------------------------------------

Decoder::Decoder(const Dictionary& dictionary) : dictionary_(dictionary), context_(made(ZSTD_createDCtx())) {}

std::uint64_t Decoder::size_of(std::span<const std::byte> stored) {
  if (stored.size() <= kCheckBytes || stored.size() >= kRecordLengthMax) return stored.size();
  std::array<std::byte, 32> front{};  // longer than any frame's header
  std::copy(kMagic.begin(), kMagic.end(), front.begin());
  const auto head = stored.subspan(kCheckBytes);
  const std::size_t size = std::min(head.size(), front.size() - kMagic.size());
  std::copy_n(head.begin(), size, front.begin() + kMagic.size());
  return ZSTD_getFrameContentSize(front.data(), kMagic.size() + size);  // errors are large numbers
}

Status Decoder::add(std::span<const std::byte> stored, std::vector<std::byte>& out) {
  if (stored.empty()) return {};
  if (stored.size() >= kRecordLengthMax) {
    append(out, stored);
    return {};
  }
  const std::uint64_t size = size_of(stored);
  if (stored.size() <= kCheckBytes || size > kRecordLengthMax) return damaged("it is no frame of zstd");
  frame_.assign(kMagic.begin(), kMagic.end());
  append(frame_, stored.subspan(kCheckBytes));
  const std::size_t begin = out.size();
  out.resize(begin + size);
  const std::size_t got = ZSTD_decompress_usingDDict(context_.get(), out.data() + begin, size, frame_.data(),
                                                     frame_.size(), dictionary_.decoding());
  if (ZSTD_isError(got)) return damaged(ZSTD_getErrorName(got));
  const auto record = std::span(out).subspan(begin);
  if (got != size || !std::ranges::equal(check_of(record), stored.first(kCheckBytes)))
    return damaged("it has other bytes than were compressed");
  return {};
}

Status Decoder::add_of_chain(std::span<const std::byte> stored, Row row, std::vector<std::byte>& out) {
  const bool is_raw = stored.size() >= kRecordLengthMax;
  if (stored.size() < kCheckBytes + kPlaceBytes) return damaged("it is too short");
  const std::uint32_t place = is_raw ? 0 : std::to_integer<std::uint32_t>(stored[kCheckBytes]);
  if (place != 0 && (next_row_ != row || next_place_ != place))
    return damaged("the record that it follows is not the one that it followed when it was compressed");
  next_row_.reset();
  if (is_raw) {
    append(out, stored);
    return {};
  }
  if (place == 0) {
    must(ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only));
    must(ZSTD_DCtx_refDDict(context_.get(), dictionary_.decoding()));
    has_begun_frame_ = false;
  }
  const auto bytes = stored.subspan(kCheckBytes + kPlaceBytes);
  const std::size_t magic_bytes = has_begun_frame_ || bytes.empty() ? 0 : kMagic.size();
  frame_.assign(kMagic.begin(), kMagic.begin() + magic_bytes);
  append(frame_, bytes);
  has_begun_frame_ = has_begun_frame_ || magic_bytes > 0;
  const std::size_t begin = out.size();
  PIF_TRY(read_frames(frame_, out));
  if (!std::ranges::equal(check_of(std::span(out).subspan(begin)), stored.first(kCheckBytes)))
    return damaged("it has other bytes than were compressed");
  next_row_ = row + 1;
  next_place_ = place + 1;
  return {};
}

// How long the record is only its end tells.
Status Decoder::read_frames(std::span<const std::byte> frame, std::vector<std::byte>& out) {
  if (frame.empty()) return {};
  const std::size_t begin = out.size();
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  for (bool is_full = true; is_full;) {
    const std::size_t before = out.size();
    if (before - begin > kRecordLengthMax) return damaged("it is longer than a record may be");
    out.resize(before + std::max(std::min(8 * frame.size(), kMostAtOnce), before - begin));
    ZSTD_outBuffer room{out.data() + before, out.size() - before, 0};
    const std::size_t outcome = ZSTD_decompressStream(context_.get(), &room, &in);
    if (ZSTD_isError(outcome)) return damaged(ZSTD_getErrorName(outcome));
    is_full = room.pos == room.size;
    out.resize(before + room.pos);
  }
  return in.pos == in.size ? Status() : damaged("bytes follow its end");
}

}  // namespace pif::compress
