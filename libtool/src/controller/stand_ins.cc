#include "controller/stand_ins.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/wire/views.h"

namespace pif::tool {
namespace {

using client::FileParts;

std::optional<LfsIndex> index_of(const FileParts& parts, std::uint32_t node) {
  const auto& nodes = parts.file_layout.nodes();
  const auto found = std::find(nodes.begin(), nodes.end(), node);
  if (found == nodes.end()) return std::nullopt;
  return static_cast<LfsIndex>(found - nodes.begin());
}

// The LFSs that may stand in for LFS k of the file, the best first: those behind it in its bevy, around its end, whose
// work does not grow by parity of the same rows; then all others.
std::vector<LfsIndex> candidates(const FileParts& parts, LfsIndex k) {
  const auto width = parts.layout.width();
  LfsIndex first = 0;
  LfsIndex size = width;
  for (const auto bevy : parts.layout.bevies()) {
    size = bevy;
    if (k < first + size) break;
    first += size;
  }
  PIF_ASSERT(k >= first && k < first + size && first + size <= width, k, first, size, width);
  std::vector<LfsIndex> out;
  const LfsIndex end = first + size;
  for (LfsIndex i = k + 1; i < end; ++i) out.push_back(i);
  for (LfsIndex i = first; i < k; ++i) out.push_back(i);
  for (LfsIndex i = end; i < width; ++i) out.push_back(i);
  for (LfsIndex i = 0; i < first; ++i) out.push_back(i);
  std::erase_if(out, [&](LfsIndex lfs) { return parts.is_absent(lfs); });
  return out;
}

// Whoever restores rows of an input learns from a component of his own what file it is.
bool can_restore(const StandIns::File& file, std::uint32_t absent, std::uint32_t candidate) {
  const auto k = index_of(*file.parts, absent);
  const std::uint64_t records = file.file_length.records;
  if (!k || file.parts->creating || file.parts->layout.rows(*k, records) == 0) return true;
  const auto own = index_of(*file.parts, candidate);
  return own && !file.parts->is_absent(*own) &&
         (file.parts->layout.rows(*own, records) > 0 || file.parts->layout.parity_rows(*own, records) > 0);
}

Status check_others(const std::vector<StandIns::File>& files, const proto::NodeInfo& absent) {
  for (const auto& file : files) {
    if (file.parts->is_protected() || !index_of(*file.parts, absent.id())) continue;
    return fail(Code::kUnavailable,
                fmt::format("it is {}, and {} has no parity: nobody can stand in for it",
                            wire::view_state_name(absent.view_state()), file.parts->path),
                absent.name());
  }
  return {};
}

Result<proto::NodeInfo> choose_for(const std::vector<StandIns::File>& files, const FileParts& parts, LfsIndex k) {
  const proto::NodeInfo& absent = parts.nodes[k];
  PIF_TRY(check_others(files, absent));
  for (const LfsIndex lfs : candidates(parts, k)) {
    const proto::NodeInfo& node = parts.nodes[lfs];
    const bool can_all = std::all_of(files.begin(), files.end(), [&](const StandIns::File& file) {
      return can_restore(file, absent.id(), node.id());
    });
    if (can_all) return node;
  }
  return fail(Code::kUnavailable,
              fmt::format("it is {}, and no other LFS has parts of all the files that it has: use them one at a time",
                          wire::view_state_name(absent.view_state())),
              absent.name());
}

}  // namespace

Result<StandIns> StandIns::choose(const std::vector<File>& files) {
  StandIns out;
  for (const File& file : files) {
    PIF_ASSERT(file.parts != nullptr && file.parts->nodes.size() == file.parts->layout.width());
    for (LfsIndex k = 0; k < file.parts->nodes.size(); ++k) {
      const std::uint32_t id = file.parts->nodes[k].id();
      if (!file.parts->is_absent(k) || out.by_absent_.contains(id)) continue;
      PIF_TRY_VALUE(out.by_absent_[id], choose_for(files, *file.parts, k));
    }
  }
  return out;
}

const proto::NodeInfo& StandIns::place_of(const proto::NodeInfo& node) const {
  const auto found = by_absent_.find(node.id());
  return found == by_absent_.end() ? node : found->second;
}

client::FileParts StandIns::with_places(client::FileParts parts) const {
  for (proto::NodeInfo& node : parts.nodes) node = proto::NodeInfo(place_of(node));
  return parts;
}

}  // namespace pif::tool
