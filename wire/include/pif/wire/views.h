// Views as they travel and as they are kept: bytes under the cluster's key, which anybody may pass on
// (docs/PROTOCOL.md "Views"). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "pif/base/capability.h"
#include "pif/base/result.h"
#include "pif/proto/shapes.pb.h"
#include "pif/wire/values.h"

namespace pif::wire {

// As it travels, and as it is kept.
std::string pack_view(const ClusterKey& key, const proto::View& view);
// Unpacks the result of pack_view(). kBadCapability: nobody who has the key did; kInvalid: its nodes are not in order,
// or have states that this program does not know.
[[nodiscard]] Result<proto::View> open_view(const ClusterKey& key, std::string_view packed);

// "member", "lost", "rebuilding", "returning"; "unknown" for other numbers.
std::string_view view_state_name(std::uint32_t state);
// Whether others do without a node in that state.
constexpr bool is_absent(std::uint32_t state) { return state == kViewLost || state == kViewRebuilding; }

}  // namespace pif::wire
