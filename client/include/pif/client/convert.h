// Between the shapes of messages and those of the program.
#pragma once

#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"

namespace pif::client {

proto::Format proto_of(const Format& format);
proto::Extent proto_of(const Extent& extent);
// kInvalid for what a newer or broken peer may have sent.
[[nodiscard]] Result<Format> format_of(const proto::Format& format);
inline Extent extent_of(const proto::Extent& extent) { return {extent.records(), extent.bytes()}; }
[[nodiscard]] Result<parity::Layout> layout_of(const proto::FileLayout& layout);

}  // namespace pif::client
