#include "nodes/nodes.h"

#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/path.h"

namespace pif::mount {
namespace {

auto no_name(NodeId node) { return fail(Code::kStaleFile, fmt::format("node {} has no name any more", node)); }

}  // namespace

// ---- names ----

bool Nodes::add_names(NodeId node, std::string& path) const {
  std::vector<const std::string*> names;
  for (NodeId at = node; at != kRootNode;) {
    const auto found = nodes_.find(at);
    if (found == nodes_.end() || found->second.folder == 0) return false;
    names.push_back(&found->second.name);
    PIF_ASSERT(names.size() <= nodes_.size(), node, names.size());  // folders do not go in a circle
    at = found->second.folder;
  }
  for (auto name = names.rbegin(); name != names.rend(); ++name) path.append("/").append(**name);
  return true;
}

Result<std::string> Nodes::path(NodeId node) const {
  const std::lock_guard lock(mutex_);
  std::string path;
  if (!add_names(node, path)) return no_name(node);
  if (path.empty()) path.push_back('/');
  return path;
}

Result<std::string> Nodes::path(NodeId folder, std::string_view name) const {
  if (!is_utf8(name)) return fail(Code::kInvalid, "a name is not UTF-8");
  std::string path;
  if (const std::lock_guard lock(mutex_); !add_names(folder, path)) return no_name(folder);
  path.append("/").append(name);
  if (name.size() <= kNameBytesMax && path.size() <= kPathBytesMax) return path;
  return fail(Code::kTooLarge, fmt::format("a name of {} bytes in {}: a name has at most {} bytes, a path {}",
                                           name.size(), path, kNameBytesMax, kPathBytesMax));
}

void Nodes::clear_name(Node& node) {
  if (node.folder == 0) return;
  const std::size_t erased = names_.erase({node.folder, node.name});
  PIF_ASSERT(erased == 1, node.folder);
  node.folder = 0;
}

void Nodes::set_name(NodeId id, Node& node, NodeId folder, std::string_view name) {
  if (node.folder == folder && node.name == name) return;
  if (const auto other = names_.find({folder, name}); other != names_.end()) clear_name(nodes_.at(other->second));
  clear_name(node);
  node.folder = folder;
  node.name = name;
  const bool is_new = names_.emplace(Name{folder, node.name}, id).second;
  PIF_ASSERT(is_new && names_.size() <= nodes_.size(), id, folder);
}

bool Nodes::look_up(NodeId folder, std::string_view name, const Entry& entry, std::optional<unsigned> client) {
  if (entry.inode == kRootNode) return true;
  const std::lock_guard lock(mutex_);
  if (is_own(entry.inode) && !client && !nodes_.contains(entry.inode)) return false;
  const auto [found, is_new] = nodes_.try_emplace(entry.inode);
  Node& node = found->second;
  if (is_new) node.client = client.value_or(static_cast<unsigned>(entry.inode % clients_));
  ++node.lookups;
  set_name(entry.inode, node, folder, name);
  return true;
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
  if (node.inode != 0) own_.erase(node.inode);
  PIF_ASSERT(node.folder == 0 && node.lookups == 0, id, node.folder, node.lookups);
  folders_.erase(id);
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

void Nodes::unlink(NodeId node) {
  const std::lock_guard lock(mutex_);
  if (const auto found = nodes_.find(node); found != nodes_.end()) clear_name(found->second);
}

void Nodes::rename(NodeId from_folder, std::string_view from, NodeId to_folder, std::string_view to) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find({from_folder, from});
  if (found == names_.end()) return;
  const NodeId id = found->second;
  set_name(id, nodes_.at(id), to_folder, to);
}

// ---- files that the file system did not know ----

NodeId Nodes::new_node() {
  const std::lock_guard lock(mutex_);
  do {
    last_own_ = is_own(last_own_ + 1) ? last_own_ + 1 : kRootNode + 1;
  } while (nodes_.contains(last_own_));
  PIF_ASSERT(is_own(last_own_), last_own_);
  return last_own_;
}

void Nodes::become_known(NodeId node, std::uint64_t inode) {
  PIF_ASSERT(is_own(node) && !is_own(inode), node, inode);
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second.inode = inode;
  own_[inode] = node;
}

Entry Nodes::here(Entry entry) const {
  const std::lock_guard lock(mutex_);
  if (const auto own = own_.find(entry.inode); own != own_.end()) entry.inode = own->second;
  return entry;
}

Entry Nodes::here(NodeId folder, Entry entry) const {
  entry = here(std::move(entry));
  const std::lock_guard lock(mutex_);
  const auto named = names_.find({folder, entry.name});
  if (named != names_.end() && is_own(named->second) && nodes_.at(named->second).inode == 0)
    entry.inode = named->second;
  return entry;
}

void Nodes::see_folder(NodeId node, const Entry& entry) {
  if (entry.kind != EntryKind::kFolder) return;
  const std::lock_guard lock(mutex_);
  if (node == kRootNode || nodes_.contains(node))
    folders_[node] = {entry.mode, entry.owner, entry.group, entry.modified_ns};
}

std::optional<Entry> Nodes::removed_folder(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto known = nodes_.find(node);
  const auto look = folders_.find(node);
  if (known == nodes_.end() || known->second.folder != 0 || look == folders_.end()) return {};
  Entry entry;
  entry.kind = EntryKind::kFolder;
  entry.inode = node;
  entry.mode = look->second.mode;
  entry.owner = look->second.owner;
  entry.group = look->second.group;
  entry.modified_ns = entry.changed_ns = look->second.modified_ns;
  return entry;
}

std::optional<Nodes::FolderLook> Nodes::folder(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = folders_.find(node);
  if (found == folders_.end()) return {};
  return found->second;
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
  PIF_ASSERT(content != nullptr, node);
  open.content = std::move(content);
  ++open.handles;
}

std::shared_ptr<Content> Nodes::close(NodeId node) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(node);
  PIF_ASSERT(found != open_.end() && found->second.handles > 0, node);
  if (--found->second.handles > 0) return nullptr;
  PIF_ASSERT(found->second.content != nullptr, node);
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

std::uint32_t Nodes::handles(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(node);
  return found == open_.end() ? 0 : found->second.handles;
}

bool Nodes::is_same_version(NodeId id, const Entry& entry) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return false;
  const Version now{entry.id, entry.file_length.bytes, entry.modified_ns};
  return std::exchange(found->second.version, now) == now;
}

}  // namespace pif::mount
