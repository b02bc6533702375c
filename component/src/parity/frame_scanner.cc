#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "parity/frame_header.h"
#include "pif/base/assert.h"
#include "stream/stream.h"

namespace pif::component {
namespace {

constexpr std::size_t kWindowBytes = 1u << 20;
constexpr std::size_t kLinesMax = 100;

// Part of a file in memory.
class Window {
 public:
  Window(File& file, std::uint64_t size) : file_(file), size_(size) {}

  // What is in memory from `offset` on: at least min(least, size - offset) bytes, least <= kWindowBytes.
  Result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t least) {
    const std::uint64_t needed = std::min<std::uint64_t>(least, size_ - std::min(size_, offset));
    if (offset < begin_ || offset + needed > begin_ + bytes_.size()) {
      bytes_.resize(std::min<std::uint64_t>(kWindowBytes, size_ - std::min(size_, offset)));
      begin_ = offset;
      PIF_TRY_VALUE(const std::size_t n, file_.read(offset, bytes_));
      if (n != bytes_.size()) size_ = offset + n;  // somebody has cut it off
      bytes_.resize(n);
    }
    PIF_ASSERT(begin_ <= offset && offset - begin_ <= bytes_.size(), begin_, offset, bytes_.size());
    return std::span<const std::byte>(bytes_).subspan(offset - begin_);
  }
  Result<std::uint64_t> next_data(std::uint64_t offset) { return file_.next_data(offset); }
  std::uint64_t size() const { return size_; }

 private:
  File& file_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

class Scanner {
 public:
  Scanner(FileId file, File& frames, std::uint64_t begin, std::uint64_t size)
      : file_(file), window_(frames, size), at_(to_unit(begin)) {
    index_.end = at_;
  }

  Result<FrameIndex> run() {
    while (at_ < window_.size() && window_.size() - at_ >= kFrameHeaderBytes) {
      PIF_TRY_VALUE(const bool taken, take_frame());
      if (!taken) PIF_TRY(pass_over());
    }
    return std::move(index_);
  }

 private:
  // Whether a frame begins here. It is passed then.
  Result<bool> take_frame() {
    PIF_ASSERT(at_ % kFrameUnit == 0, at_);
    PIF_TRY_VALUE(const auto bytes, window_.at(at_, kFrameHeaderBytes));
    if (bytes.size() < kFrameHeaderBytes) return false;
    FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (!header.is_possible()) return false;
    const std::uint64_t row = at_ + sizeof header, end = row + header.bytes;
    PIF_TRY_VALUE(const bool holds, hash_holds(header, row));
    if (!holds) return false;
    end_stretch();
    index_.frames.emplace(header.record, Frame{header.record, header.generation, header.number, row,
                                               static_cast<std::uint32_t>(header.bytes)});
    PIF_TRY_VALUE(const auto behind, window_.at(end, to_unit(end) - end));
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(behind.size(), to_unit(end) - end); ++i)
      if (behind[i] != std::byte{0}) note({end + i, end + i + 1});
    PIF_ASSERT(index_.end <= at_ && at_ < end, index_.end, at_, end);
    index_.end = at_ = to_unit(end);
    return true;
  }

  Result<bool> hash_holds(const FrameHeader& header, std::uint64_t row) {
    if (header.bytes > window_.size() - row) return false;
    stream_.reset();
    stream_.add(header.hashed());
    for (std::uint64_t at = row, end = row + header.bytes; at < end;) {
      PIF_TRY_VALUE(const auto bytes, window_.at(at, std::min<std::uint64_t>(end - at, kWindowBytes)));
      if (bytes.empty()) return false;
      const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), end - at));
      stream_.add(part);
      at += part.size();
    }
    return header.hash == header.hash_of(file_, stream_);
  }

  // From one place where no frame begins to the next where one may: quickly over holes.
  Status pass_over() {
    PIF_TRY_VALUE(const auto bytes, window_.at(at_, kFrameHeaderBytes));
    if (bytes.size() < kFrameHeaderBytes) {
      at_ = window_.size();
      return {};
    }
    if (word_at(bytes.data()) != 0)
      note({at_, at_ + kFrameUnit});
    else if (is_zero(bytes))
      return pass_hole(bytes.size());
    std::size_t i = kFrameUnit;
    for (; i + kFrameHeaderBytes <= bytes.size(); i += kFrameUnit) {
      const std::uint64_t word = word_at(bytes.data() + i);
      if (word == kFrameMagic) break;
      if (word != 0) note({at_ + i, at_ + i + kFrameUnit});
    }
    at_ += i;
    return {};
  }

  // There are so many zeros here.
  Status pass_hole(std::size_t zeros) {
    PIF_TRY_VALUE(const std::uint64_t data, window_.next_data(at_ + zeros));
    at_ = data / kFrameUnit * kFrameUnit;
    return {};
  }

  // Bytes that are no frame.
  void note(Range bytes) {
    if (stretch_.empty()) stretch_ = bytes;
    stretch_.end = bytes.end;
  }
  void end_stretch() {
    if (!stretch_.empty() && index_.damages.size() < kLinesMax)
      index_.damages.push_back(fmt::format("file {}: bytes {} to {} of .pap are no copy of a row", file_.value,
                                           stretch_.begin, stretch_.end - 1));
    stretch_ = {};
  }

  const FileId file_;
  Window window_;
  std::uint64_t at_;
  Range stretch_;  // of what is no frame, since the last one
  HashStream stream_;
  FrameIndex index_;
};

}  // namespace

Result<FrameIndex> scan_frames(FileId file, ParityFiles& files, std::uint64_t begin) {
  if (begin > kLengthMax)
    return fail(Code::kCorrupt, fmt::format("file {}: .pap cannot begin at byte {}", file.value, begin));
  FrameIndex none;
  none.end = to_unit(begin);
  if (files.frames == nullptr) return none;
  PIF_TRY_VALUE(const std::uint64_t size, files.frames->size());
  if (begin > size) return none;
  return Scanner(file, *files.frames, begin, size).run();
}

}  // namespace pif::component
