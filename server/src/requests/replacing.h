// Files that take the place of a committed one, whatever its name is by then.
#pragma once

#include "context/server_context.h"

namespace pif::server {

// A committed file, where it is now.
struct Replaced {
  std::uint64_t parent = 0;
  std::string name;
  proto::StoredEntry entry;
};

// Nothing: there is none of that id, or it is not committed any more.
[[nodiscard]] Result<std::optional<Replaced>> committed_file(ServerContext& context, std::uint64_t file);
// kStaleFile: it was removed, or replaced. kUnsupported: it has forks, which would go with it.
[[nodiscard]] Result<Replaced> file_to_replace(ServerContext& context, std::uint64_t file);
// kStaleFile: the caller cannot reach the file, and has it not open. kPermission: he may not write it.
[[nodiscard]] Status check_may_replace(ServerContext& context, const Call& call, const Replaced& replaced);
// The file loses its set-user-id bit, and set-group-id, as on a disk, since `who` writes to it; not if he is root.
[[nodiscard]] Status drop_privileges(ServerContext& context, const Requester& who, std::uint64_t parent,
                                     std::string_view name, proto::StoredEntry& entry);
// How a file is created that takes its place: with its format and named attributes, and, if it can be, its layout.
[[nodiscard]] Result<proto::Create> create_like(const ServerContext& context, const Replaced& replaced);

// Gives the new version the owner, group, mode, named attributes and inode of the one that it replaces.
void take_over(const proto::StoredEntry& replaced, proto::StoredEntry& entry);
// The inode's number: the id of its first version.
std::uint64_t inode_of(const proto::StoredEntry& entry);
// It was written to, last at `written` by its writer's clock (ns; 0: before all else): its times move, but for one that
// somebody has set since.
void note_change(const ServerContext& context, std::int64_t written, proto::Attributes& attributes);

}  // namespace pif::server
