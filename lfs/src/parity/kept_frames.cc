#include "parity/kept_frames.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kPunchBytes = 4096;
constexpr std::uint64_t kEraseBytes = 256u << 10;  // at once

}  // namespace

Status add_frames(FileId file, component::ParityFiles& files, std::span<const component::NewFrame> frames,
                  std::uint64_t& end, std::vector<component::Frame>& written) {
  PIF_TRY_VALUE(const std::uint64_t behind, component::write_frames(file, files, end, frames));
  for (const component::NewFrame& frame : frames) {
    const auto bytes = static_cast<std::uint32_t>(frame.row.size());
    written.push_back({frame.record, frame.generation, frame.number, end + component::kFrameHeaderBytes, bytes});
    end += component::frame_bytes(bytes);
  }
  PIF_ASSERT(end == behind, end, behind);
  return {};
}

std::vector<component::Frame> take_void_frames(component::FrameIndex& index, const Format& format,
                                               std::uint64_t generation, const FileLength& base) {
  std::vector<component::Frame> out;
  for (auto at = index.frames.lower_bound(base.records == 0 ? 0 : base.records - 1); at != index.frames.end();) {
    const auto& [record, frame] = *at;
    // The base's last record may have been filled up.
    const bool is_behind =
        record >= base.records || frame.bytes > record_bytes(format, base, record).value_or(frame.bytes);
    const bool is_void = frame.generation < generation && is_behind;
    if (is_void) out.push_back(frame);
    at = is_void ? index.frames.erase(at) : std::next(at);
  }
  return out;
}

Status erase_frames(component::ParityFiles& files, std::vector<component::Frame> frames) {
  PIF_ASSERT(files.frames != nullptr, frames.size());
  std::sort(frames.begin(), frames.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  const std::vector<std::byte> zeros(kEraseBytes);
  Range run;  // frames are mostly side by side
  const auto erase = [&]() -> Status {
    for (; !run.empty(); run.begin = std::min(run.begin + kEraseBytes, run.end))
      PIF_TRY(files.frames->write(run.begin, std::span(zeros).first(std::min(kEraseBytes, run.size()))));
    return {};
  };
  for (const component::Frame& frame : frames) {
    PIF_ASSERT(frame.offset >= component::kFrameHeaderBytes, frame.offset);
    const std::uint64_t begin = frame.offset - component::kFrameHeaderBytes;
    if (begin != run.end) {
      PIF_TRY(erase());
      run.begin = begin;
    }
    run.end = begin + component::frame_bytes(frame.bytes);
  }
  return erase();
}

std::optional<std::uint32_t> record_bytes(const Format& format, const FileLength& file_length, RecordNumber record) {
  if (!format.is_fixed()) return std::nullopt;
  return fixed_record_bytes(format.record_length, file_length, record);
}

// Of a filled record the frame with the right number of bytes counts, so one that was cancelled does not.
const component::Frame* counted_frame(const component::FrameIndex& index, const proto::ComponentState& state,
                                      const Format& format, const FileLength& file_length, RecordNumber record) {
  const auto bytes = record_bytes(format, file_length, record);
  const component::Frame* const frame = bytes ? index.find(record, *bytes) : index.find(record);
  const bool counts =
      frame != nullptr && (frame->generation >= state.parity_generation() || record < state.parity_base().records());
  return counts ? frame : nullptr;
}

// ---- rows ----------------------------------------------------------------------------------------------------------

void FrameRows::add(Row row, const component::Frame& frame) {
  PIF_ASSERT(rows_.empty() || row > rows_.back(), row);
  rows_.push_back(row);
  frames_.push_back(frame);
}

Status FrameRows::read(Row first, std::uint64_t count, std::uint64_t step, component::PackedRows& out) {
  PIF_ASSERT(step >= 1 && rows_.size() == frames_.size(), step, rows_.size(), frames_.size());
  const auto begin = static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), first) - rows_.begin());
  std::uint64_t bytes = 0;
  std::size_t found = 0;
  for (; found < count && (found == 0 || bytes < component::kSourceBytes); ++found) {
    if (begin + found >= rows_.size() || rows_[begin + found] != first + found * step)
      return fail(Code::kEndOfFile,
                  fmt::format("file {}: there is no copy of row {}", file_.value, first + found * step));
    bytes += component::frame_bytes(frames_[begin + found].bytes);
  }
  return component::read_frames(file_, *files_, std::span(frames_).subspan(begin, found), out);
}

Result<CopiedMembers> find_copies(const Keeper& keeper, const CopiesNeeded& needed, const ParityFilesPtr& files,
                                  const FrameOf& frame_of) {
  PIF_ASSERT(needed.is_absent.size() == keeper.size() && files != nullptr, needed.is_absent.size(), keeper.size());
  CopiedMembers out(keeper.size());
  const std::uint64_t page_rows = keeper.shape.page_rows();
  for (std::size_t member = 0; member < keeper.size(); ++member) {
    if (!needed.is_absent[member]) continue;
    auto rows = std::make_shared<FrameRows>(keeper.shape.file, files);
    const auto take = [&](Range parity_rows, bool is_read) -> Status {
      for (auto j = parity_rows.begin; j < parity_rows.end; ++j) {
        const RecordNumber record = keeper.record(member, j);
        const component::Frame* const frame = frame_of(record);
        if (frame == nullptr)
          return fail(
              Code::kNotFound,
              fmt::format("file {}: record {} belongs to LFS {} of the file, which is absent, and has no copy at "
                          "LFS {}, which keeps its parity; write it again",
                          keeper.shape.file.value, record, keeper.members.lfs[member], keeper.index));
        if (is_read) rows->add(keeper.shape.row_of(member, j), *frame);
      }
      return {};
    };
    for (const Range pages : needed.pages) PIF_TRY(take({pages.begin * page_rows, pages.end * page_rows}, true));
    const Range written = keeper.parity_rows_of(member, keeper.rows_of(member, needed.records));
    for (const Range parity_rows : needed.parity_rows) PIF_TRY(take(cut(parity_rows, written), false));
    out[member] = std::move(rows);
  }
  return out;
}

// ---- the front -----------------------------------------------------------------------------------------------------

std::uint64_t front_of_frames(const Keeper& keeper, const component::FrameIndex& index, std::uint64_t pages) {
  const std::uint64_t page_rows = keeper.shape.page_rows();
  std::uint64_t begin = index.end;
  for (const auto& [record, frame] : index.frames) {
    const auto row = keeper.layout.parity_of(keeper.layout.locate(record)).row;
    if (row >= pages * page_rows) begin = std::min(begin, frame.offset - component::kFrameHeaderBytes);
  }
  return begin;
}

void punch_front(component::ParityFiles& files, std::uint64_t begin) {
  const std::uint64_t end = begin / kPunchBytes * kPunchBytes;
  if (end == 0 || files.frames == nullptr) return;
  const auto punched = files.frames->punch(0, end);
  if (!punched && punched.error().code != Code::kUnsupported) spdlog::warn("{}", punched.error().text);
}

}  // namespace pif::lfs
