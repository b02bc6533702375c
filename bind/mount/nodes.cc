#include "nodes.h"

#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/path.h"

namespace pif::mount {

// ---- names ----

bool Nodes::add_names(NodeId node, std::string& path) const {
  std::vector<const std::string*> names;
  for (NodeId at = node; at != kRootNode;) {
    const auto found = nodes_.find(at);
    if (found == nodes_.end() || found->second.folder == 0) return false;
    names.push_back(&found->second.name);
    at = found->second.folder;
  }
  for (auto name = names.rbegin(); name != names.rend(); ++name) path.append("/").append(**name);
  return true;
}

Result<std::string> Nodes::path(NodeId node) const {
  const std::lock_guard lock(mutex_);
  std::string path;
  if (!add_names(node, path)) return fail(Code::kStaleFile, fmt::format("node {} has no name any more", node));
  if (path.empty()) path = "/";
  return path;
}

Result<std::string> Nodes::path(NodeId folder, std::string_view name) const {
  if (!is_utf8(name)) return fail(Code::kInvalid, "a name is not UTF-8");
  PIF_TRY_VALUE(std::string path, this->path(folder));
  if (path != "/") path += '/';
  path += name;
  if (name.size() <= kNameBytesMax && path.size() <= kPathBytesMax) return path;
  return fail(Code::kTooLarge, fmt::format("a name of {} bytes in {}: a name has at most {} bytes, a path {}",
                                           name.size(), path, kNameBytesMax, kPathBytesMax));
}

void Nodes::clear_name(Node& node) {
  if (node.folder == 0) return;
  names_.erase({node.folder, node.name});
  node.folder = 0;
}

void Nodes::set_name(NodeId id, Node& node, NodeId folder, std::string_view name) {
  if (node.folder == folder && node.name == name) return;
  if (const auto other = names_.find({folder, name}); other != names_.end()) clear_name(nodes_.at(other->second));
  clear_name(node);
  node.folder = folder;
  node.name = name;
  names_.emplace(Name{folder, node.name}, id);
}

void Nodes::look_up(NodeId folder, std::string_view name, const Entry& entry, std::optional<unsigned> client) {
  if (entry.inode == kRootNode) return;
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = nodes_.try_emplace(entry.inode);
  Node& node = found->second;
  if (is_new) node.client = client.value_or(static_cast<unsigned>(entry.inode % clients_));
  ++node.lookups;
  set_name(entry.inode, node, folder, name);
}

unsigned Nodes::client_of(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? static_cast<unsigned>(node % clients_) : found->second.client;
}

void Nodes::forget(NodeId id, std::uint64_t lookups) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  node.lookups -= std::min(lookups, node.lookups);
  if (node.lookups > 0) return;
  clear_name(node);
  nodes_.erase(found);
}

std::optional<NodeId> Nodes::find(NodeId folder, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find({folder, name});
  if (found == names_.end()) return {};
  return found->second;
}

void Nodes::unlink(NodeId folder, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = names_.find({folder, name}); found != names_.end()) clear_name(nodes_.at(found->second));
}

void Nodes::rename(NodeId from_folder, std::string_view from, NodeId to_folder, std::string_view to) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find({from_folder, from});
  if (found == names_.end()) return;
  const NodeId id = found->second;
  set_name(id, nodes_.at(id), to_folder, to);
}

// ---- open files ----

std::shared_ptr<Content> Nodes::content(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(node);
  return found == open_.end() ? nullptr : found->second.content;
}

void Nodes::open(NodeId node, std::shared_ptr<Content> content) {
  const std::lock_guard lock(mutex_);
  Open& open = open_[node];
  PIF_ASSERT(open.handles == 0 || open.content == content, node, open.handles);
  open.content = std::move(content);
  ++open.handles;
}

std::shared_ptr<Content> Nodes::close(NodeId node) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(node);
  PIF_ASSERT(found != open_.end() && found->second.handles > 0, node);
  if (--found->second.handles > 0) return nullptr;
  auto content = std::move(found->second.content);
  open_.erase(found);
  return content;
}

std::vector<NodeId> Nodes::open_nodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeId> all;
  all.reserve(open_.size());
  for (const auto& [node, open] : open_) all.push_back(node);
  return all;
}

bool Nodes::is_same_version(NodeId id, const Entry& entry) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return false;
  const Version now{entry.id, entry.file_length.bytes, entry.modified_ns};
  return std::exchange(found->second.version, now) == now;
}

}  // namespace pif::mount
