// Between the shapes of messages and those of the program.
#pragma once

#include <vector>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"

namespace pif::client {

proto::Format proto_of(const Format& format);
proto::FileLength proto_of(const FileLength& file_length);
// kInvalid for what a newer or broken peer may have sent.
[[nodiscard]] Result<Format> format_of(const proto::Format& format);
inline FileLength file_length_of(const proto::FileLength& file_length) {
  return {file_length.records(), file_length.bytes()};
}
[[nodiscard]] Result<parity::Layout> layout_of(const proto::FileLayout& layout);

}  // namespace pif::client
