// The names of a mount that the kernel knows: files, folders and the like that it has looked up and not forgotten. A
// node's number is the id of its first version (Entry::inode), the root's is 1. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pif/client/client.h"

namespace pif::mount {

class Content;
using NodeId = std::uint64_t;
inline constexpr NodeId kRootNode = 1;
// Files that the file system does not know yet get numbers that it never gives (docs/FORMAT.md: an id's upper 32 bits
// are not 0). They keep them until the kernel forgets them.
inline bool is_own(NodeId node) { return node != kRootNode && node >> 32 == 0; }

class Nodes {
 public:
  explicit Nodes(unsigned clients) : clients_(clients) {}

  // Its path by what is known here: others may have renamed it. kStaleFile: it was unlinked here, or is unknown.
  [[nodiscard]] Result<std::string> path(NodeId node) const;
  // The path of a name in a folder. kTooLarge, too; kInvalid: it is not UTF-8.
  [[nodiscard]] Result<std::string> path(NodeId folder, std::string_view name) const;

  // The kernel learns of it once more. A node that had the name until now has none any more. client: whose it is, if
  // it is a new node. False: a number of this mount that was forgotten meanwhile; the kernel is to look again.
  bool look_up(NodeId folder, std::string_view name, const Entry& entry, std::optional<unsigned> client = {});
  void forget(NodeId node, std::uint64_t lookups);
  void rename(NodeId from_folder, std::string_view from, NodeId to_folder, std::string_view to);
  // Whether a node is known that has the name.
  std::optional<NodeId> find(NodeId folder, std::string_view name) const;
  void unlink(NodeId folder, std::string_view name);

  // ---- files that the file system did not know when they were made: -o lazy ----
  NodeId new_node();
  // It is known now, as this inode.
  void become_known(NodeId node, std::uint64_t inode);
  // The file system's entry of a file, with its node here.
  Entry here(Entry entry) const;
  // The same of a name in a folder: of a file that becomes known at this moment, too.
  Entry here(NodeId folder, Entry entry) const;
  // It has no name any more.
  void unlink(NodeId node);
  // The kernel gets a folder's attributes.
  void see_folder(NodeId node, const Entry& entry);
  struct FolderLook {
    std::uint32_t mode = 0, owner = 0, group = 0;
    std::int64_t modified_ns = 0;
  };
  // As the kernel knows it; nothing: it is no folder.
  std::optional<FolderLook> folder(NodeId node) const;
  // The attributes of a folder that was removed here: somebody may have it open, or stand in it. Nothing: it is no such
  // folder.
  std::optional<Entry> removed_folder(NodeId node) const;

  // Which client its calls go through, as long as the kernel knows it.
  unsigned client_of(NodeId node) const;
  // ---- open files: who calls has the node's client ----
  std::shared_ptr<Content> content(NodeId node) const;
  // One more handle, and its content. The last close takes it away, and returns it.
  void open(NodeId node, std::shared_ptr<Content> content);
  std::shared_ptr<Content> close(NodeId node);
  std::vector<NodeId> open_nodes() const;
  std::uint32_t handles(NodeId node) const;
  // Whether the kernel's copy of the file's bytes is of this version. It is from now on.
  bool is_same_version(NodeId node, const Entry& entry);

 private:
  struct Open {
    std::shared_ptr<Content> content;
    std::uint32_t handles = 0;
  };
  struct Version {
    std::uint64_t id = 0, bytes = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const Version&) const = default;
  };
  struct Node {
    NodeId folder = 0;  // 0: it has no name any more
    std::string name;
    std::uint64_t lookups = 0;
    unsigned client = 0;
    Version version;
    std::uint64_t inode = 0;  // of an own node that is known
  };
  struct Name {
    NodeId folder;
    std::string_view name;  // the node's
    bool operator==(const Name&) const = default;
  };
  struct HashName {
    std::size_t operator()(const Name& name) const {
      return std::hash<std::string_view>()(name.name) * 31 + static_cast<std::size_t>(name.folder);
    }
  };
  bool add_names(NodeId node, std::string& path) const;
  void set_name(NodeId id, Node& node, NodeId folder, std::string_view name);
  void clear_name(Node& node);

  const unsigned clients_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<NodeId, Node> nodes_;
  std::unordered_map<Name, NodeId, HashName> names_;
  std::unordered_map<NodeId, Open> open_;
  std::unordered_map<std::uint64_t, NodeId> own_;  // by inode
  std::unordered_map<NodeId, FolderLook> folders_;
  NodeId last_own_ = kRootNode;
};

}  // namespace pif::mount
