// The owner, group and mode of new files and folders.
#pragma once

#include "context/server_context.h"

namespace pif::server {

// As a request has it.
struct Wanted {
  std::uint32_t mode = 0;
  std::optional<std::uint32_t> owner, group;
};
template <typename Request>
Wanted wanted_of(const Request& ask) {
  Wanted wanted{ask.mode(), {}, {}};
  if (ask.has_owner()) wanted.owner = ask.owner();
  if (ask.has_group()) wanted.group = ask.group();
  return wanted;
}

// The attributes of an entry that is made in a folder. A set-group-id folder gives its group, and folders the bit.
// kPermission: another's owner or group is for root and the file system's owner.
[[nodiscard]] Result<proto::Attributes> new_attributes(const ServerContext& context, const Requester& who,
                                                       const Guard& folder, const Wanted& wanted,
                                                       proto::EntryType type);

}  // namespace pif::server
