#include "repair/rescue_plan.h"

#include <algorithm>
#include <set>

#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::cli {
namespace {

// How many rows of the file the directory expects on the node; 0 too if its layout cannot be read.
std::uint64_t rows_on(std::uint32_t node, const proto::FileLayout& file_layout, const proto::FileLength& file_length) {
  const auto layout = wire::layout_of(file_layout);
  const auto at = std::find(file_layout.nodes().begin(), file_layout.nodes().end(), node);
  if (!layout || at == file_layout.nodes().end()) return 0;
  return layout->rows(static_cast<LfsIndex>(at - file_layout.nodes().begin()), file_length.records());
}

bool uses(std::uint32_t node, const FileRecord& file) {
  return std::find(file.layout().nodes().begin(), file.layout().nodes().end(), node) != file.layout().nodes().end();
}

// Nodes from which nothing can be rebuilt now. One that is only silent comes back with what it has.
std::set<std::uint32_t> without_rows(const std::vector<proto::NodeInfo>& nodes) {
  std::set<std::uint32_t> out;
  for (const auto& node : nodes) {
    if (node.state() == kNodeStale || wire::is_absent(node.view_state())) out.insert(node.id());
  }
  return out;
}

// The nodes of the bevy that has the node, and of its companion: who has parity of its rows, and of whose rows it has.
std::vector<std::uint32_t> pair_of(std::uint32_t node, const proto::FileLayout& layout) {
  const auto bevies = static_cast<std::size_t>(layout.bevies_size());
  std::vector<std::vector<std::uint32_t>> members(bevies);
  int at = 0;
  for (std::size_t bevy = 0; bevy < bevies; ++bevy) {
    for (std::uint32_t i = 0; i < layout.bevies(static_cast<int>(bevy)) && at < layout.nodes_size(); ++i)
      members[bevy].push_back(layout.nodes(at++));
  }
  for (std::size_t bevy = 0; bevy < bevies; ++bevy) {
    if (std::find(members[bevy].begin(), members[bevy].end(), node) == members[bevy].end()) continue;
    std::vector<std::uint32_t> pair = members[bevy];
    const auto& companion = members[(bevy + bevies / 2) % bevies];  // a and a + m/2 are companions
    pair.insert(pair.end(), companion.begin(), companion.end());
    return pair;
  }
  return {};
}

bool lacks(std::uint32_t node, const FileRecord& file) {
  return std::any_of(file.lacking().begin(), file.lacking().end(),
                     [node](const proto::FileLack& lack) { return lack.node() == node; });
}

// Whose rows of the file are gone with the node; nobody's, if they can be rebuilt. Without parity it is the node's
// alone. Where another one of its pair is bad, lacks its part or has a mark, neither can be rebuilt.
std::vector<std::uint32_t> lost_with(std::uint32_t node, const FileRecord& file, const std::set<std::uint32_t>& bad) {
  if (file.layout().bevies_size() == 0 || file.layout().form() != 1) return {node};
  std::vector<std::uint32_t> lost;
  for (const std::uint32_t other : pair_of(node, file.layout())) {
    const auto is_of_it = [other](const proto::FileMark& mark) { return mark.node() == other; };
    const bool has_mark = std::any_of(file.marks().begin(), file.marks().end(), is_of_it);
    if (other != node && (has_mark || bad.contains(other) || lacks(other, file))) lost.push_back(other);
  }
  if (!lost.empty()) lost.push_back(node);
  return lost;
}

// By kind and node, so that they are marked with few requests.
void sort(std::vector<MarkedFile>& files) {
  std::stable_sort(files.begin(), files.end(), [](const MarkedFile& a, const MarkedFile& b) {
    return std::pair(a.node, a.kind) < std::pair(b.node, b.kind);
  });
}

// Bytes that fill up a short last record make no other record.
bool is_longer(const proto::FileLength& one, const proto::FileLength& other) {
  return std::pair(one.records(), one.bytes()) > std::pair(other.records(), other.bytes());
}

// The length that the file had: as its LFS 0 published it, else as it was when it was sealed.
proto::FileLength file_length_of(const Held& held) {
  proto::FileLength longest;
  for (const auto& [node, state] : held) {
    if (state.shape().index() == 0) return state.published();
    if (is_longer(state.published(), longest)) longest = state.published();
  }
  return longest;
}

// What the directory knows of the file's length, or its LFS 0, which knows of appends first.
proto::FileLength longest(const FileRecord& file, const Held* held) {
  const proto::FileLength there = held != nullptr && !held->empty() ? file_length_of(*held) : proto::FileLength();
  return is_longer(there, file.file_length()) ? there : file.file_length();
}

// An append makes the component at the file's LFS 0 before any rows: where others have such rows, LFS 0 has lost its
// own, and would give out the same range again.
bool lacks_sequencer(std::uint32_t node, const proto::FileLayout& layout, const Held& held) {
  if (layout.nodes().empty() || layout.nodes(0) != node || held.contains(node)) return false;
  return std::any_of(held.begin(), held.end(), [](const auto& one) { return one.second.generation() > 0; });
}

// The change of the node's root up to which the old directory has heard of it. Numbers of a root that was taken back
// since, or is older than the directory has seen it, say nothing: they were given out twice.
std::uint64_t heard_until(const proto::NodeInfo& node) {
  return node.taken_back() > 0 || node.state() == kNodeStale ? 0 : node.number();
}

// Whether rows of the file are on another node, too.
bool is_elsewhere(std::uint32_t node, const proto::FileLayout& layout, const proto::FileLength& file_length) {
  return std::any_of(layout.nodes().begin(), layout.nodes().end(),
                     [&](std::uint32_t other) { return other != node && rows_on(other, layout, file_length) > 0; });
}

// Rows there were overwritten after the directory was copied. Nobody can tell whether the other LFSs are as new, so the
// file may mix old rows with new ones. Appends need no such mark: LFS 0 says which of them count.
bool is_newer(const proto::NodeInfo& node, const proto::FileLayout& layout, const proto::FileLength& file_length,
              const Held& held) {
  const auto there = held.find(node.id());
  return there != held.end() && there->second.log_applied() > heard_until(node) &&
         is_elsewhere(node.id(), layout, file_length);
}

// Whether the last row is there that short, as it was before it was filled up.
bool lacks_bytes(std::uint32_t node, const proto::FileLayout& file_layout, const proto::FileLength& file_length,
                 const proto::ComponentState& there) {
  const auto layout = wire::layout_of(file_layout);
  const auto format = wire::format_of(there.shape().format());
  const auto at = std::find(file_layout.nodes().begin(), file_layout.nodes().end(), node);
  if (!layout || !format || !format->is_fixed() || at == file_layout.nodes().end()) return false;
  return there.bytes() < bytes_of_rows(*layout, static_cast<LfsIndex>(at - file_layout.nodes().begin()),
                                       format->record_length, wire::file_length_of(file_length));
}

// Whether rows are gone there. Files that its catalogue does not know have rows of a component that was being removed,
// or whose entry is lost: the LFS does not say that it never had any (Length).
bool is_lost(std::uint32_t node, std::uint64_t file, const proto::FileLayout& layout,
             const proto::FileLength& file_length, const Held& held, const Everything& everything) {
  const std::uint64_t rows = rows_on(node, layout, file_length);
  const auto there = held.find(node);
  if (there == held.end() && (rows > 0 || everything.aside.contains({file, node}))) return true;
  if (there == held.end()) return lacks_sequencer(node, layout, held);
  return there->second.rows() < rows || lacks_bytes(node, layout, file_length, there->second);
}

proto::AdoptFiles::One adopted(std::uint64_t file, const Held& held, const Everything& everything,
                               const std::vector<proto::NodeInfo>& nodes) {
  proto::AdoptFiles::One one;
  const proto::ComponentState& any = held.begin()->second;
  one.set_file(file);
  *one.mutable_format() = any.shape().format();
  *one.mutable_layout() = any.shape().layout();
  *one.mutable_file_length() = file_length_of(held);
  one.set_owner(any.shape().owner());
  for (const auto& [node, state] : held) one.set_epoch(std::max(one.epoch(), state.epoch()));
  for (const std::uint32_t node : one.layout().nodes()) {
    const bool lost = is_lost(node, file, one.layout(), one.file_length(), held, everything);
    const auto known =
        std::find_if(nodes.begin(), nodes.end(), [node](const proto::NodeInfo& info) { return info.id() == node; });
    const bool mixed = known != nodes.end() && is_newer(*known, one.layout(), one.file_length(), held);
    if (!lost && !mixed) continue;
    proto::FileMark& mark = *one.add_marks();
    mark.set_node(node);
    mark.set_kind(lost ? wire::kMarkLost : wire::kMarkMixed);
  }
  return one;
}

}  // namespace

StalePlan plan_stale(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                     const std::map<std::uint64_t, proto::ComponentState>& there,
                     const std::vector<proto::NodeInfo>& nodes) {
  std::set<std::uint32_t> others_without = without_rows(nodes);
  others_without.erase(node);
  StalePlan out;
  for (const auto& [id, file] : files) {
    if (!uses(node, file) || file.state() == kFileDoomed) continue;
    if (file.state() == kFilePending) {
      out.marked.push_back({id, node, wire::kMarkMixed, ""});
      continue;
    }
    const std::uint64_t rows = rows_on(node, file.layout(), file.file_length());
    const auto component = there.find(id);
    const bool is_missing = component == there.end();
    const bool lost = is_missing ? rows > 0 : component->second.rows() < rows;
    if (lost || !file.untouched()) {
      out.marked.push_back({id, node, lost ? wire::kMarkLost : wire::kMarkMixed, file.path()});
      if (lost_with(node, file, others_without).empty()) ++out.rebuildable;
    } else if (is_missing && file.layout().form() == wire::kFormParity && file.file_length().records() > 0) {
      ++out.parity;
    }
  }
  sort(out.marked);
  return out;
}

LostPlan plan_lost(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                   const std::vector<proto::NodeInfo>& nodes) {
  const std::set<std::uint32_t> bad = without_rows(nodes);
  LostPlan out;
  for (const auto& [id, file] : files) {
    if (!uses(node, file) || file.state() == kFileDoomed) continue;
    // A file that was appended to may have more rows there than the directory knows of.
    const bool has_rows = rows_on(node, file.layout(), file.file_length()) > 0 || !file.untouched();
    // With parity it is committed in the view in which it was begun, or not at all.
    const bool is_given_up = file.state() == kFilePending && file.layout().form() != wire::kFormParity;
    if (is_given_up) out.marked.push_back({id, node, wire::kMarkLost, ""});
    if (file.state() == kFilePending || !has_rows) continue;
    const std::vector<std::uint32_t> lost = lost_with(node, file, bad);
    for (const std::uint32_t other : lost) out.marked.push_back({id, other, wire::kMarkLost, file.path()});
    if (lost.empty()) out.rebuilt.push_back({id, node, wire::kMarkLost, file.path()});
  }
  sort(out.marked);
  return out;
}

std::vector<std::uint32_t> needed_of_pair(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                                          const std::vector<proto::NodeInfo>& nodes) {
  std::set<std::uint32_t> absent;
  for (const auto& one : nodes)
    if (one.id() != node && one.view_state() > wire::kViewMember) absent.insert(one.id());
  std::set<std::uint32_t> out;
  for (const auto& [id, file] : files) {
    if (absent.empty() || file.layout().form() != wire::kFormParity || file.state() != kFileCommitted) continue;
    for (const std::uint32_t other : pair_of(node, file.layout()))
      if (absent.contains(other)) out.insert(other);
  }
  return {out.begin(), out.end()};
}

AcceptedPlan plan_accepted(std::uint32_t node, const std::map<std::uint64_t, FileRecord>& files,
                           const std::vector<proto::NodeInfo>& nodes) {
  std::set<std::uint32_t> absent = without_rows(nodes);
  absent.erase(node);
  AcceptedPlan out;
  for (const auto& [id, file] : files) {
    if (!uses(node, file) || file.state() != kFileCommitted || file.layout().form() != wire::kFormParity) continue;
    bool is_concerned = false;
    for (const std::uint32_t other : pair_of(node, file.layout())) {
      is_concerned = is_concerned || absent.contains(other);
      if (other == node || !lacks(other, file)) continue;
      is_concerned = true;
      out.marked.push_back({id, other, wire::kMarkLost, file.path()});
    }
    if (is_concerned) out.concerned.push_back({id, node, wire::kMarkLost, file.path()});
  }
  sort(out.marked);
  return out;
}

OldDirectoryPlan plan_old(const std::map<std::uint64_t, FileRecord>& files, const Everything& everything,
                          const std::vector<proto::NodeInfo>& nodes) {
  OldDirectoryPlan out;
  // What the directory has as being created may have been committed since.
  const auto is_unknown = [&](std::uint64_t id, const Held& held) {
    const auto file = files.find(id);
    if (file == files.end()) return true;
    return file->second.state() == kFilePending &&
           std::any_of(held.begin(), held.end(), [](const auto& one) { return one.second.state() != kComponentOpen; });
  };
  for (const auto& [id, held] : everything.components) {
    if (held.empty() || !is_unknown(id, held) || held.begin()->second.shape().layout().nodes().empty()) continue;
    out.adopted.push_back(adopted(id, held, everything, nodes));
  }
  for (const auto& [id, file] : files) {
    if (file.state() != kFileCommitted) continue;
    const auto found = everything.components.find(id);
    const Held held = found == everything.components.end() ? Held() : found->second;
    const proto::FileLength file_length = longest(file, &held);
    for (const auto& node : nodes) {
      if (!uses(node.id(), file)) continue;
      const bool lost = is_lost(node.id(), id, file.layout(), file_length, held, everything);
      // The directory may have forgotten that the LFS was taken back after changes had been lost there. Or the LFS is
      // older still.
      const bool is_old = (node.taken_back() > 0 || node.state() == kNodeStale) && !file.untouched();
      const bool mixed = is_old || is_newer(node, file.layout(), file_length, held);
      if (lost || mixed) out.marked.push_back({id, node.id(), lost ? wire::kMarkLost : wire::kMarkMixed, file.path()});
    }
  }
  sort(out.marked);
  return out;
}

}  // namespace pif::cli
