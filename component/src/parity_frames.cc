#include <array>
#include <tuple>

#include <fmt/format.h>

#include "frame_header.h"
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
  if (!pieces.empty()) PIF_TRY(files.frames->write(end, pieces));
  return at;
}

const Frame* FrameIndex::find(RecordNumber record, std::uint32_t bytes) const {
  return newest(*this, record, [&](const Frame& frame) { return frame.bytes == bytes; });
}

const Frame* FrameIndex::find(RecordNumber record) const {
  return newest(*this, record, [](const Frame&) { return true; });
}

Status read_frame(FileId file, ParityFiles& files, const Frame& frame, std::vector<std::byte>& out) {
  const auto wrong = [&] {
    return fail(Code::kCorrupt, fmt::format("file {}, the copy of record {} at byte {} of .pap: it is not what was "
                                            "written",
                                            file.value, frame.record, frame.offset));
  };
  PIF_ASSERT(frame.bytes <= kRecordLengthMax && frame.offset >= kFrameHeaderBytes, frame.bytes, frame.offset);
  if (files.frames == nullptr) return wrong();
  FrameHeader header;
  out.resize(frame.bytes);
  const std::array<Piece, 2> pieces = {Piece{reinterpret_cast<std::byte*>(&header), sizeof header},
                                       Piece{out.data(), out.size()}};
  PIF_TRY_VALUE(const std::size_t n, files.frames->read(frame.offset - sizeof header, pieces));
  if (n != sizeof header + out.size() || !header.is_possible()) return wrong();
  if (std::tie(header.record, header.generation, header.number) !=
          std::tie(frame.record, frame.generation, frame.number) ||
      header.bytes != frame.bytes)
    return wrong();
  HashStream stream;
  stream.add(header.hashed());
  stream.add(out);
  if (header.hash != header.hash_of(file, stream)) return wrong();
  return {};
}

}  // namespace pif::component
