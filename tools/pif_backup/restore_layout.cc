#include "restore_layout.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "backup_archive.h"
#include "pif/base/inheriting.h"
#include "pif/cluster/cluster.h"

namespace pif::backup {
namespace {

bool is_up(const Node& node) { return node.state == "up"; }

// On this host, as pif.toml has it.
bool is_here(const cluster::Cluster& cluster, const Node& node) {
  return std::any_of(cluster.lfss.begin(), cluster.lfss.end(),
                     [&](const auto& lfs) { return lfs.id == node.id && cluster.is_here(lfs); });
}

// LFSs in a pair of its bevies.
std::uint32_t pair_of(const message::NamedEntry& file) { return std::max(2 * file.bevies(0), 2u); }

}  // namespace

Result<ArchiveReaders> ArchiveReaders::find(tool::Controller& controller, std::string folder) {
  ArchiveReaders readers;
  readers.folder_ = std::move(folder);
  PIF_TRY_VALUE(const SystemStatus status, controller.client().status());
  const auto cluster = cluster::load_cluster(controller.folder());
  for (const Node& node : status.nodes)
    if (is_up(node)) readers.up_.push_back({node.id, node.name, cluster && is_here(*cluster, node)});
  return readers;
}

Result<std::uint32_t> ArchiveReaders::reader_of(const message::NodeArchive& archive) const {
  const std::string path = archive_path(folder_, archive.name());
  const bool archive_is_here = ::access(path.c_str(), F_OK) == 0;
  const auto named =
      std::find_if(up_.begin(), up_.end(), [&](const Reader& node) { return node.name == archive.name(); });
  if (named != up_.end() && (named->is_here || !archive_is_here)) return named->id;
  const auto here = std::find_if(up_.begin(), up_.end(), [](const Reader& node) { return node.is_here; });
  if (archive_is_here && here != up_.end()) return here->id;
  return fail(Code::kUnavailable,
              fmt::format("nobody can read {}: {} is not up; copy the archive to a host with an LFS "
                          "that is, and run the command there",
                          path, archive.name()));
}

Result<LayoutChoice> LayoutChoice::find(tool::Controller& controller, const message::ArchiveHead& head,
                                        const RestoreOptions& options) {
  LayoutChoice choice;
  PIF_TRY_VALUE(choice.wanted_, tool::options_of_new_output(controller, Format::fixed(1), options));
  choice.says_where_ = options.width.has_value() || !options.nodes.empty();
  choice.says_parity_ = options.bevy.has_value();
  PIF_TRY_VALUE(const SystemStatus status, controller.client().status());
  choice.same_system_ = status.cluster == head.cluster();
  for (const Node& node : status.nodes) {
    choice.known_.push_back(node.id);
    if (is_up(node)) choice.up_.push_back(node.id);
  }
  return choice;
}

bool LayoutChoice::choose(const message::NamedEntry& file, CreateOptions& create) const {
  create.same_host_ok = wanted_.same_host_ok || !says_parity_;  // as it was
  if (says_where_) {
    create.nodes = wanted_.nodes;
    create.width = wanted_.width;
  } else {
    keep(file, create);
  }
  const auto width = create.nodes.empty() ? create.width : static_cast<std::uint32_t>(create.nodes.size());
  if (says_parity_) {
    create.bevy = wanted_.bevy;
    return true;
  }
  create.bevy = kNoBevies;
  if (file.bevies().empty()) return true;
  if (width == static_cast<std::uint32_t>(file.nodes_size())) {
    create.bevies.assign(file.bevies().begin(), file.bevies().end());
    create.bevy = 0;
  } else if (width % pair_of(file) == 0) {
    create.bevy = file.bevies(0);
  }
  return create.bevy != kNoBevies;
}

// Of a file with parity one of each pair of bevies may be away.
void LayoutChoice::keep(const message::NamedEntry& file, CreateOptions& create) const {
  const auto are_all_in = [&](const std::vector<std::uint32_t>& nodes) {
    return std::all_of(file.nodes().begin(), file.nodes().end(),
                       [&](std::uint32_t node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); });
  };
  if (same_system_ && are_all_in(file.bevies().empty() ? up_ : known_)) {
    create.nodes.assign(file.nodes().begin(), file.nodes().end());
    return;
  }
  create.width = std::min(static_cast<std::uint32_t>(file.nodes_size()), static_cast<std::uint32_t>(up_.size()));
  if (file.bevies().empty()) return;
  const std::uint32_t whole_pairs = create.width / pair_of(file) * pair_of(file);
  if (whole_pairs > 0) create.width = whole_pairs;
}

}  // namespace pif::backup
