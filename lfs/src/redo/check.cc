#include "redo/check.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "pif/lfs/lfs.h"
#include "redo/recovery.h"
#include "store/catalogue.h"
#include "store/convert.h"
#include "store/covered.h"
#include "store/keeper.h"
#include "store/kept_state.h"
#include "store/root.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kDamagesMax = 10000;  // lines; what is beyond them is counted by nobody
constexpr std::size_t kPageEntries = 256;

bool is_short(component::File& file, const std::string& path, std::uint64_t expected,
              std::vector<std::string>& damages) {
  const auto size = file.size();
  if (!size)
    damages.push_back(size.error().text);
  else if (*size < expected)
    damages.push_back(fmt::format("{} is truncated: {} of {} bytes", path, *size, expected));
  return !size || *size < expected;
}

}  // namespace

void check_files(component::Storage& storage, const std::string& stem, const component::Shape& shape,
                 const component::Tail& tail, bool sums, std::vector<std::string>& damages) {
  auto files = component::open_files(storage, stem, shape.format, component::OpenMode::kRead);
  if (!files) {
    const bool missing = files.error().code == Code::kNotFound;
    damages.push_back(
        missing ? fmt::format("file {}: a file of {}.* is missing: {}", name_of(shape.file), stem, files.error().text)
                : files.error().text);
    return;
  }
  bool any = is_short(*files->data, stem + ".dat", tail.bytes, damages);
  any |= is_short(*files->sums, stem + ".sum", tail.bytes / shape.chunk_bytes * shape.sum_bytes(), damages);
  if (!shape.format.is_fixed()) {
    any |= is_short(*files->index, stem + ".idx", tail.rows * 8, damages);
    any |= is_short(*files->index_sums, stem + ".isum", tail.rows * 8 / component::kIndexChunkBytes * 8, damages);
  }
  if (!sums || any) return;
  auto found = component::Reader(shape, tail, *files).check();
  if (!found) return damages.push_back(found.error().text);
  for (auto& line : *found) damages.push_back(std::move(line));
}

namespace {

constexpr std::size_t kUncoveredMax = 100;  // lines

// A record may have been filled up since this LFS has learnt a length: then the copy of all of it serves.
bool has_copy(const component::FrameIndex& index, RecordNumber record, std::uint32_t bytes) {
  const auto [begin, end] = index.frames.equal_range(record);
  return std::any_of(begin, end, [bytes](const auto& one) { return one.second.bytes >= bytes; });
}

// Rows that are in no page must be in frames.
void check_frames(const Keeper& keeper, component::ParityFiles& files, const proto::ComponentState& state,
                  std::vector<std::string>& damages) {
  const auto index = component::scan_frames(keeper.shape.file, files, state.pap_begin());
  if (!index) return damages.push_back(index.error().text);
  const FileLength published = file_length_of(state.published());
  const std::uint64_t page_rows = keeper.shape.page_rows();
  std::size_t missing = 0;
  const std::uint64_t parity_rows = keeper.parity_rows(published);
  const auto check_row = [&](std::uint64_t j) {
    for (std::size_t member = 0; member < keeper.size() && missing < kUncoveredMax; ++member) {
      const RecordNumber record = keeper.record(member, j);
      if (record >= published.records) continue;
      const std::uint32_t bytes =
          keeper.format().is_fixed() ? fixed_record_bytes(keeper.format().record_length, published, record) : 0;
      if (has_copy(*index, record, bytes)) continue;
      damages.push_back(fmt::format("file {}: record {} has its parity here, which has neither a page nor a copy of it",
                                    name_of(keeper.shape.file), record));
      ++missing;
    }
  };
  // A length may be one that somebody has published without rows, so pages that are there are not counted one by one.
  for (const Range& pages : missing_pages(state, {state.pages(), (parity_rows + page_rows - 1) / page_rows}))
    for (std::uint64_t j = pages.begin * page_rows; j < std::min(pages.end * page_rows, parity_rows); ++j) {
      check_row(j);
      if (missing >= kUncoveredMax) return;
    }
}

}  // namespace

void check_parity(component::Storage& storage, const std::string& stem, const proto::ComponentState& state, bool sums,
                  std::vector<std::string>& damages) {
  const bool is_being_made = state.state() == kSealed && !state.gathered();
  if (!keeps_parity(state.shape()) || is_being_made) return;
  const auto shape = shape_of(state.shape());
  const auto layout = layout_of(state.shape().layout());
  if (!shape || !layout) return damages.push_back((shape ? layout.error() : shape.error()).text);
  const Keeper keeper = Keeper::of(*shape, *layout, state.shape().index());
  if (auto ok = check_kept(keeper, state); !ok) return damages.push_back(ok.error().text);
  if (keeper.parity_rows(file_length_of(state.published())) == 0 && state.pages() == 0) return;
  auto files = component::open_parity(storage, stem, component::OpenMode::kRead);
  if (!files) return damages.push_back(files.error().text);
  if (state.pages() > 0 && (!files->pages || !files->sums))
    return damages.push_back(fmt::format("file {}: {}.par or {}.psum is missing", name_of(shape->file), stem, stem));
  if (state.pages() > 0 && sums) {
    if (auto ok = component::check_parity(keeper.shape, *files, state.pages(), {}, damages); !ok)
      damages.push_back(ok.error().text);
  }
  check_frames(keeper, *files, state, damages);
}

namespace {

void check_entry(component::Storage& storage, const std::string& root, const proto::ComponentState& state, bool sums,
                 CheckReport& report) {
  const auto shape = shape_of(state.shape());
  if (!shape) return report.damages.push_back(fmt::format("file {}: {}", state.shape().file(), shape.error().text));
  check_files(storage, component::stem(root, shape->file), *shape, tail_of(state), sums, report.damages);
  check_parity(storage, component::stem(root, shape->file), state, sums, report.damages);
  if (state.published().records() < state.rows() && state.shape().index() == 0 &&
      state.shape().layout().nodes_size() == 1 && state.generation() == 0)
    report.damages.push_back(fmt::format("file {}: {} rows, but a length of {} records", state.shape().file(),
                                         state.rows(), state.published().records()));
  report.bytes += state.bytes();
}

}  // namespace

Result<CheckReport> check_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                               bool verify_sums) {
  PIF_TRY(read_identity(storage, root));
  PIF_TRY(catalogue::check_version(catalogue));
  RedoLog log(storage, log_folder(root), 0);
  // As a file system's checker does with its journal: what was acknowledged is replayed first.
  PIF_TRY(raise_root(storage, catalogue, root));
  PIF_TRY(replay_log(storage, catalogue, root, log));
  CheckReport report;
  std::unordered_set<std::uint64_t> known;
  std::vector<proto::ComponentState> page;
  // In pages: checking takes long, and a transaction must not stay open that long.
  for (FileId from(0);;) {
    page.clear();
    PIF_TRY(catalogue::each(catalogue, from, [&](FileId file, Result<proto::ComponentState> state) {
      known.insert(file.value);
      if (state)
        page.push_back(std::move(*state));
      else
        report.damages.push_back(state.error().text);
      return page.size() < kPageEntries;
    }));
    report.components += page.size();
    for (const auto& state : page) check_entry(storage, root, state, verify_sums, report);
    if (report.damages.size() > kDamagesMax) return report;
    if (page.size() < kPageEntries || page.back().shape().file() == ~std::uint64_t{0}) break;
    from = FileId(page.back().shape().file() + 1);
  }
  PIF_TRY(catalogue::each_quarantined(catalogue, FileId(0), [&](FileId file, const proto::StoredQuarantine&) {
    known.insert(file.value);
    ++report.quarantined;
    return true;
  }));
  PIF_TRY(each_data_file(storage, root, [&](const std::string& folder, const std::string& name) -> Status {
    FileId file;
    if (!parse_file_name(name, file))
      report.damages.push_back(fmt::format("{}/{} is no file of an LFS", folder, name));
    else if (!known.contains(file.value))
      report.leftovers.push_back(
          fmt::format("{}/{}: no entry of the catalogue owns it; the next start puts it aside", folder, name));
    return {};
  }));
  return report;
}

}  // namespace pif::lfs
