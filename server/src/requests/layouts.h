// Which LFSs a new file gets, in which order and in which bevies.
#pragma once

#include "context/registry.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/proto/messages.pb.h"

namespace pif::server {

// From width, nodes, bevies and bevy of `ask`. kInvalid says what does not fit and what would; kUnavailable: no LFS is
// up, or one that was asked for by name is down.
[[nodiscard]] Result<proto::FileLayout> choose_layout(const proto::Create& ask, const Registry& registry,
                                                      std::uint32_t default_bevy, Time now);

}  // namespace pif::server
