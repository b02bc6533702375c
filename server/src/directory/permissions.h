// The rules of POSIX: what owner, group and mode let a requester do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pif/proto/messages.pb.h"

namespace pif::server {

struct Requester {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;  // primary first; at least one
  bool all_powerful = false;        // root, or the cluster's owner
};

// Values of the mode's bits.
enum Want : std::uint32_t { kWantSearch = 1, kWantWrite = 2, kWantRead = 4 };
enum ModeBit : std::uint32_t { kGroupMayRun = 010, kSticky = 01000, kSetGroup = 02000, kSetUser = 04000 };
inline constexpr std::uint32_t kModeMask = 07777;
inline constexpr std::uint32_t kNarrowModeMask = 0777;  // what format 2 of the directory has

struct Guard {
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;
};
inline Guard guard_of(const proto::Attributes& attributes) {
  return {attributes.owner(), attributes.group(), attributes.mode()};
}

inline bool is_member(const Requester& who, std::uint32_t group) {
  return std::find(who.gids.begin(), who.gids.end(), group) != who.gids.end();
}

inline bool may(const Requester& who, const Guard& guard, std::uint32_t want) {
  if (who.all_powerful) return true;
  std::uint32_t granted = guard.mode & 7;
  if (who.uid == guard.owner) {
    granted = guard.mode >> 6 & 7;
  } else if (is_member(who, guard.group)) {
    granted = guard.mode >> 3 & 7;
  }
  return (granted & want) == want;
}

// Whether `who`, who may write in the folder, may remove, rename or replace what is `owner`'s in it.
inline bool may_take_away(const Requester& who, const Guard& folder, std::uint32_t owner) {
  return who.all_powerful || (folder.mode & kSticky) == 0 || who.uid == folder.owner || who.uid == owner;
}

// The mode of a file whose bytes, owner or group somebody else may change: it gives nobody the rights of its owner or
// group any more. A set-group-id bit without group-execute gives none.
inline std::uint32_t without_privileges(std::uint32_t mode) {
  return mode & ~(kSetUser | ((mode & kGroupMayRun) != 0 ? kSetGroup : 0u));
}
// The mode that `who` may give to what is of this group.
inline std::uint32_t mode_by(const Requester& who, std::uint32_t group, std::uint32_t mode) {
  const bool may_set_group = who.all_powerful || is_member(who, group);
  return mode & kModeMask & ~(may_set_group ? 0u : kSetGroup);
}

}  // namespace pif::server
