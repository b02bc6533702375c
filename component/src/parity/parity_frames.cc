#include <array>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "parity/frame_header.h"
#include "pif/base/assert.h"

namespace pif::component {
namespace {

// Null: none counts. Of equal ones the last.
template <typename Counts>
const Frame* newest(const FrameIndex& index, RecordNumber record, Counts counts) {
  const Frame* best = nullptr;
  const auto age = [](const Frame& frame) { return std::tie(frame.generation, frame.number); };
  const auto [from, to] = index.frames.equal_range(record);
  for (auto it = from; it != to; ++it)
    if (counts(it->second) && (best == nullptr || age(it->second) >= age(*best))) best = &it->second;
  return best;
}

Status other_frame(FileId file, const Frame& frame) {
  return fail(Code::kCorrupt, fmt::format("file {}, the copy of record {} at byte {} of .pap: it is not what was "
                                          "written",
                                          file.value, frame.record, frame.offset));
}

Status check_frame(FileId file, const Frame& frame, const FrameHeader& header, std::span<const std::byte> row,
                   HashStream& stream) {
  const bool is_same = std::tie(header.record, header.generation, header.number) ==
                           std::tie(frame.record, frame.generation, frame.number) &&
                       header.bytes == frame.bytes;
  if (!header.is_possible() || !is_same) return other_frame(file, frame);
  stream.reset();
  stream.add(header.hashed());
  stream.add(row);
  return header.hash == header.hash_of(file, stream) ? Status() : other_frame(file, frame);
}

}  // namespace

Result<std::uint64_t> write_frames(FileId file, ParityFiles& files, std::uint64_t end,
                                   std::span<const NewFrame> frames) {
  static constexpr std::array<std::byte, kFrameUnit> kZeros{};
  PIF_ASSERT(end % kFrameUnit == 0 && files.frames != nullptr, end);
  std::vector<FrameHeader> headers;
  headers.reserve(frames.size());  // pieces point into it
  std::vector<ConstPiece> pieces;
  std::uint64_t at = end;
  HashStream stream;
  for (const NewFrame& frame : frames) {
    if (frame.row.size() > kRecordLengthMax)
      return fail(Code::kTooLarge,
                  fmt::format("file {}: record {} has {} bytes", file.value, frame.record, frame.row.size()));
    FrameHeader& header = headers.emplace_back();
    header.record = frame.record;
    header.bytes = frame.row.size();
    header.generation = frame.generation;
    header.number = frame.number;
    stream.reset();
    stream.add(header.hashed());
    stream.add(frame.row);
    header.hash = header.hash_of(file, stream);
    at += sizeof header + header.bytes;
    pieces.push_back({reinterpret_cast<const std::byte*>(&header), sizeof header});
    pieces.push_back({frame.row.data(), frame.row.size()});
    pieces.push_back({kZeros.data(), to_unit(at) - at});
    at = to_unit(at);
  }
  PIF_ASSERT(at % kFrameUnit == 0 && headers.size() == frames.size(), at, headers.size(), frames.size());
  if (!pieces.empty()) PIF_TRY(files.frames->write(end, pieces));
  return at;
}

const Frame* FrameIndex::find(RecordNumber record, std::uint32_t bytes) const {
  return newest(*this, record, [&](const Frame& frame) { return frame.bytes == bytes; });
}

const Frame* FrameIndex::find(RecordNumber record) const {
  return newest(*this, record, [](const Frame&) { return true; });
}

const Frame* FrameIndex::find(RecordNumber record, std::optional<std::uint32_t> bytes, std::uint64_t generation) const {
  return newest(*this, record, [&](const Frame& frame) {
    return frame.generation == generation && (!bytes || frame.bytes == *bytes);
  });
}

Result<std::uint64_t> behind_frames(ParityFiles& files) {
  PIF_ASSERT(files.frames != nullptr);
  PIF_TRY_VALUE(const std::uint64_t size, files.frames->size());
  return to_unit(size);
}

Status read_frame(FileId file, ParityFiles& files, const Frame& frame, std::vector<std::byte>& out) {
  PIF_ASSERT(frame.bytes <= kRecordLengthMax && frame.offset >= kFrameHeaderBytes, frame.bytes, frame.offset);
  if (files.frames == nullptr) return other_frame(file, frame);
  FrameHeader header;
  out.resize(frame.bytes);
  const std::array<Piece, 2> pieces = {Piece{reinterpret_cast<std::byte*>(&header), sizeof header},
                                       Piece{out.data(), out.size()}};
  PIF_TRY_VALUE(const std::size_t n, files.frames->read(frame.offset - sizeof header, pieces));
  if (n != sizeof header + out.size()) return other_frame(file, frame);
  HashStream stream;
  return check_frame(file, frame, header, out, stream);
}

Status read_frames(FileId file, ParityFiles& files, std::span<const Frame> frames, PackedRows& out) {
  out = {};
  HashStream stream;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < frames.size();) {
    if (files.frames == nullptr) return other_frame(file, frames[i]);
    PIF_ASSERT(frames[i].offset >= kFrameHeaderBytes, frames[i].offset);
    const std::uint64_t begin = frames[i].offset - kFrameHeaderBytes;
    std::uint64_t end = frames[i].offset + frames[i].bytes;
    std::size_t next = i + 1;
    for (; next < frames.size() && frames[next].offset == to_unit(end) + kFrameHeaderBytes; ++next) {
      if (frames[next].offset + frames[next].bytes - begin > kSourceBytes) break;
      end = frames[next].offset + frames[next].bytes;
    }
    bytes.resize(end - begin);
    PIF_TRY_VALUE(const std::size_t n, files.frames->read(begin, bytes));
    if (n != bytes.size()) return other_frame(file, frames[next - 1]);
    for (; i < next; ++i) {
      const std::size_t at = frames[i].offset - begin;
      FrameHeader header;
      std::memcpy(&header, bytes.data() + at - sizeof header, sizeof header);
      const auto row = std::span(bytes).subspan(at, frames[i].bytes);
      PIF_TRY(check_frame(file, frames[i], header, row, stream));
      out.lengths.push_back(frames[i].bytes);
      out.bytes.insert(out.bytes.end(), row.begin(), row.end());
    }
  }
  return {};
}

}  // namespace pif::component
