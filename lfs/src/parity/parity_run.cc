#include "parity/parity_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kFarBytes = 4u << 20;    // of all members, in one window: they are in memory
constexpr std::uint64_t kNearBytes = 64u << 20;  // the executor has a thread for so long

}  // namespace

ParityRun::ParityRun(Peers& peers, component::Storage& storage, Works& works, const Keeper& keeper,
                     const MemberOptions& options, const ParityPlan& plan,
                     std::shared_ptr<component::ParityFiles> files)
    : works_(works),
      keeper_(keeper),
      options_(options),
      plan_(plan),
      files_(std::move(files)),
      rows_(peers, storage, keeper, options) {
  outcome_.end = plan.end;
}

Status ParityRun::run(const proto::ComponentShape& shape) {
  PIF_TRY(rows_.open(shape));
  const std::uint64_t page_rows = keeper_.shape.page_rows();
  for (Window window = next_window(); !window.empty(); window = next_window()) {
    const Range rows =
        window.pages.empty() ? window.frames : Range{window.pages.begin * page_rows, window.pages.end * page_rows};
    PIF_ASSERT(!rows.empty(), rows.begin, rows.end);
    if (rows_.is_any_far()) PIF_TRY(rows_.fetch(rows));
    PIF_TRY(works_.run([&] { return write(window); }));
  }
  return {};
}

std::uint64_t ParityRun::window_pages() const {
  const std::uint64_t row_bytes = row_bytes_of(keeper_.format(), options_.file_length);
  const std::uint64_t page_bytes = keeper_.shape.page_rows() * keeper_.size() * row_bytes;
  return std::max<std::uint64_t>((rows_.is_any_far() ? kFarBytes : kNearBytes) / page_bytes, 1);
}

ParityRun::Window ParityRun::next_window() {
  Window window;
  const std::uint64_t pages = window_pages();
  const auto take = [](std::deque<Range>& left, std::uint64_t count) -> Range {
    while (!left.empty() && left.front().empty()) left.pop_front();
    if (left.empty()) return {};
    const Range taken{left.front().begin, left.front().begin + std::min(count, left.front().size())};
    left.front().begin = taken.end;
    return taken;
  };
  window.pages = take(plan_.pages, pages);
  if (window.pages.empty()) window.frames = take(plan_.frames, pages * keeper_.shape.page_rows());
  return window;
}

// ---- away from the loop --------------------------------------------------------------------------------------------

Status ParityRun::write(const Window& window) {
  const auto sources = rows_.sources();
  if (!window.pages.empty())
    PIF_TRY(component::write_pages(keeper_.shape, *files_, window.pages.begin, window.pages.size(), sources));
  for (std::size_t member = 0; member < keeper_.size() && !window.frames.empty(); ++member) {
    const Range parity_rows = cut(window.frames, rows_.parity_rows(member));
    if (parity_rows.empty() || rows_.is_copied(member) || options_.without == member) continue;
    PIF_ASSERT(sources[member] != nullptr, member);
    PIF_TRY(write_frames(member, parity_rows, *sources[member]));
  }
  return {};
}

// The row as it is in a file of this length: another append may have made it longer since.
Status ParityRun::check_row(RecordNumber record, std::span<const std::byte>& row) const {
  if (!keeper_.format().is_fixed()) return {};
  const auto bytes = fixed_record_bytes(keeper_.format().record_length, options_.file_length, record);
  if (row.size() < bytes)
    return fail(
        options_.generation == 0 ? Code::kCorrupt : Code::kRetry,
        fmt::format("file {}: record {} has {} bytes, not {}", keeper_.shape.file.value, record, row.size(), bytes));
  row = row.first(bytes);
  return {};
}

Status ParityRun::write_frames(std::size_t member, Range parity_rows, component::RowSource& source) {
  component::PackedRows rows;
  std::vector<component::NewFrame> frames;
  for (Range left = parity_rows; !left.empty(); left.begin += rows.lengths.size()) {
    PIF_TRY(source.read(keeper_.shape.row_of(member, left.begin), left.size(), keeper_.size(), rows));
    PIF_ASSERT(!rows.lengths.empty() && rows.lengths.size() <= left.size(), rows.lengths.size(), left.size());
    frames.clear();
    std::span<const std::byte> rest = rows.bytes;
    for (std::size_t i = 0; i < rows.lengths.size(); ++i) {
      const RecordNumber record = keeper_.record(member, left.begin + i);
      std::span<const std::byte> row = rest.first(rows.lengths[i]);
      rest = rest.subspan(rows.lengths[i]);
      PIF_TRY(check_row(record, row));
      frames.push_back({record, plan_.generation, 0, row});
    }
    PIF_TRY(add_frames(keeper_.shape.file, *files_, frames, outcome_.end, outcome_.frames));
  }
  return {};
}

}  // namespace pif::lfs
