#include "requests/new_entries.h"

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::server {

Result<proto::Attributes> new_attributes(const ServerContext& context, const Requester& who, const Guard& folder,
                                         const Wanted& wanted, proto::EntryType type) {
  PIF_ASSERT(!who.gids.empty(), who.uid);
  const std::uint32_t owner = wanted.owner.value_or(who.uid);
  const std::uint32_t own_group = wanted.group.value_or(who.gids.front());
  if (!who.all_powerful && (owner != who.uid || !is_member(who, own_group)))
    return fail(Code::kPermission,
                fmt::format("uid {} may not make what is uid {}'s and of group {}", who.uid, owner, own_group));
  const bool gives_group = (folder.mode & kSetGroup) != 0;
  proto::Attributes attributes;
  attributes.set_owner(owner);
  attributes.set_group(gives_group ? folder.group : own_group);
  attributes.set_mode(mode_by(who, attributes.group(), wanted.mode));
  if (gives_group && type == proto::FOLDER) attributes.set_mode(attributes.mode() | kSetGroup);
  attributes.set_modified(context.wall_ns());
  attributes.set_changed(attributes.modified());
  return attributes;
}

}  // namespace pif::server
