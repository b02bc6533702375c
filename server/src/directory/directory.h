// Folders: walking paths with the requester's rights, and what stat and list show.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "directory/permissions.h"
#include "directory/rows.h"

namespace pif::server {

// A folder and those above it, root first.
struct Folder {
  struct Step {
    std::uint64_t id;
    Guard guard;
  };
  std::vector<Step> chain;
  std::shared_ptr<const proto::Striping> striping;  // of the folder itself; null: it has none
  std::uint64_t id() const { return chain.back().id; }
  const Guard& guard() const { return chain.back().guard; }
};
using FolderRef = std::shared_ptr<const Folder>;

// Where a name is or will be. A fork's folder is its file, with what all that is made there has alike (its LFS, and of
// a placed file the format) for striping, and its name "SUBFILE/NAME".
struct Place {
  FolderRef folder;
  std::string_view name;        // into the path
  std::string_view path;        // checked
  std::uint32_t fork_node = 0;  // of a fork: where it is; 0: it is none
  bool is_fork() const { return fork_node != 0; }
};

// The rights of the folder of a file's forks, made of the file's own.
Guard guard_of_forks(const proto::Attributes& file);

class Directory {
 public:
  explicit Directory(Rows& rows) : rows_(rows) {}

  // How far the folders of this checked path are there. `who` may search all of `folder`, or it is kPermission;
  // kNotDirectory: what comes next is a file.
  struct Walk {
    FolderRef folder;  // the deepest that is there
    std::size_t end;   // of its path; the path's size: all of it is there
  };
  [[nodiscard]] Result<Walk> walk(std::string_view path, const Requester& who);
  // The folder of this checked path ("" is the root), every step of which `who` may search. kNotFound, kNotDirectory,
  // kPermission name the step.
  [[nodiscard]] Result<FolderRef> folder(std::string_view path, const Requester& who);
  // The folder that `path`'s last name is in, or the file whose fork it is. kInvalid for the root; kNotDirectory: a
  // slash ends it, and it is a file.
  [[nodiscard]] Result<Place> place(std::string_view path, const Requester& who);
  // The same for who wants to make, remove or move the name there.
  [[nodiscard]] Result<Place> place_to_change(std::string_view path, const Requester& who);
  // Whether `who` may remove, rename or replace this entry, which is in a folder where he may: kPermission in a sticky
  // one.
  [[nodiscard]] static Status check_may_take_away(const Place& at, const proto::StoredEntry& entry,
                                                  const Requester& who);
  // The rights of a folder, or of a file that has forks, by its id. kCorrupt: it is not there.
  [[nodiscard]] Result<Guard> guard_of_folder(std::uint64_t folder);
  // The fork of this file, committed or being created: kStaleFile: it is gone, or it is not for `who` to know of it;
  // kPermission: he may not read it; kInvalid: it is no name of a fork, or there is no such subfile.
  [[nodiscard]] Result<Place> fork_of(std::uint64_t file, std::string_view text, const Requester& who);
  [[nodiscard]] Result<Place> fork_to_change(std::uint64_t file, std::string_view text, const Requester& who);
  // The entry of a file by whose id forks are asked for. kStaleFile as of fork_of().
  [[nodiscard]] Result<proto::StoredEntry> file_with_forks(std::uint64_t file, const Requester& who);
  // Sets the length of a placed file, which is that of its forks.
  [[nodiscard]] Status measure(proto::EntryInfo& placed);
  // The entry at `path`; the root too.
  struct Found {
    Place place;  // folder is null for the root
    proto::StoredEntry entry;
  };
  [[nodiscard]] Result<Found> find(std::string_view path, const Requester& who);
  // The bytes of the entry at `path` as an EntryInfo; `info` is overwritten. How many entries were read for it.
  [[nodiscard]] Result<std::size_t> stat(std::string_view path, const Requester& who, std::string& info);
  // The same of an entry that is at hand. kCorrupt: it is no message.
  [[nodiscard]] Result<std::size_t> show(std::string_view stored, std::string_view name, std::string& info);
  // The path of a folder, found by climbing. Steps already climbed are remembered in `known`.
  [[nodiscard]] Result<std::string> path_of(std::uint64_t folder,
                                            std::unordered_map<std::uint64_t, std::string>& known);
  // Whether `who` may search this folder and all above it, by climbing. Folders climbed already have their answer in
  // `known`.
  [[nodiscard]] Result<bool> may_reach(std::uint64_t folder, const Requester& who,
                                       std::unordered_map<std::uint64_t, bool>& known);

  // Folders are remembered by path; whoever renames, removes or changes one calls this.
  void forget_folders() {
    folders_.clear();
    steps_ = 0;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct Above {
    std::uint64_t parent;
    Guard guard;  // of the folder itself
  };
  [[nodiscard]] Result<proto::StoredFile> where(std::uint64_t folder);
  [[nodiscard]] Result<Above> above(std::uint64_t folder);
  Walk nearest(std::string_view path) const;
  void remember(std::string_view path, const FolderRef& folder);
  [[nodiscard]] Result<bool> enter(Folder& folder, std::uint64_t parent, std::string_view name, std::string_view path);
  [[nodiscard]] Status descend(std::string_view path, Folder& folder, std::size_t& end);
  [[nodiscard]] Result<Place> fork_at(const Folder& above, const proto::StoredEntry& file, std::string_view text,
                                      std::string_view path, const Requester& who);
  // Nothing: it is no path of a fork.
  [[nodiscard]] Result<std::optional<Place>> fork_by_path(std::string_view path, const Requester& who);
  [[nodiscard]] static Status check_may_change(const Place& at, const Requester& who);
  // kNotDirectory: something other than a folder is at a path that means one.
  [[nodiscard]] Status check_no_file(const Place& at);

  Rows& rows_;
  std::unordered_map<std::string, FolderRef, Hash, std::equal_to<>> folders_;  // by checked path
  std::size_t steps_ = 0;                                                      // of all of them
};

// For messages to people: "a file".
std::string_view kind_name(const proto::StoredEntry& entry);
// A stored entry as the wire shows it; without the length of a placed file.
proto::EntryInfo info_of(const proto::StoredEntry& entry, std::string_view name);

}  // namespace pif::server
