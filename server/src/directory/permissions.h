// Who asks, and what owner, group and mode let them do: POSIX rules without the sticky bit.
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
inline constexpr std::uint32_t kModeMask = 0777;

struct Guard {
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint32_t mode = 0;
};
inline Guard guard_of(const proto::Attributes& attributes) {
  return {attributes.owner(), attributes.group(), attributes.mode()};
}

inline bool may(const Requester& who, const Guard& guard, std::uint32_t want) {
  if (who.all_powerful) return true;
  std::uint32_t granted = guard.mode & 7;
  if (who.uid == guard.owner) {
    granted = guard.mode >> 6 & 7;
  } else if (std::find(who.gids.begin(), who.gids.end(), guard.group) != who.gids.end()) {
    granted = guard.mode >> 3 & 7;
  }
  return (granted & want) == want;
}

}  // namespace pif::server
