#include "store/check.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "pif/lfs/lfs.h"
#include "store/catalogue.h"
#include "store/convert.h"
#include "store/recovery.h"
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
  any |= is_short(*files->sums, stem + ".sum", tail.bytes / shape.chunk_bytes * 8, damages);
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

void check_entry(component::Storage& storage, const std::string& root, const proto::ComponentState& state, bool sums,
                 CheckReport& report) {
  const auto shape = shape_of(state.shape());
  if (!shape) return report.damages.push_back(fmt::format("file {}: {}", state.shape().file(), shape.error().text));
  check_files(storage, component::stem(root, shape->file), *shape, tail_of(state), sums, report.damages);
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
  RedoLog log(storage, log_path(root), 0);
  // As a file system's checker does with its journal: what was acknowledged goes home first.
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
          fmt::format("{}/{}: no entry of the catalogue owns it; the next start removes it", folder, name));
    return {};
  }));
  return report;
}

}  // namespace pif::lfs
