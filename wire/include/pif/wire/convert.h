// Between messages and the types that the rest works with. Values from another process are checked here. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"
#include "pif/wire/values.h"

namespace pif::wire {

// kInvalid, saying why, for what cannot be: Format::validate() and Layout::make() have the rules. The layout's width is
// the number of its nodes. form_of: how its LFSs store it (component::Shape::form); kInvalid for a form that such a
// layout cannot have, kVersion for one that this program does not know. layout_of checks that, too.
[[nodiscard]] Result<Format> format_of(const proto::Format& format);
[[nodiscard]] Result<parity::Layout> layout_of(const proto::FileLayout& layout);
[[nodiscard]] Result<std::uint32_t> form_of(const proto::FileLayout& layout);
// With bevies, but made before LFSs kept parity: it can only be read (docs/FORMAT.md "Older files").
inline bool is_older(const proto::FileLayout& layout) { return layout.form() == 0 && layout.bevies_size() > 0; }
// Not checked: records and bytes may not belong together (base/format.h: is_fixed_file_length).
inline FileLength file_length_of(const proto::FileLength& file_length) {
  return {file_length.records(), file_length.bytes()};
}
// The peer's error with its text and node. A code that this program does not know is kInternal.
Error error_of(const proto::Error& error);

// The kind of an entry that is neither a folder nor a file. kInvalid: there is no such kind, or what is said of it
// cannot be: a link has a target, and it alone; a device has a number, and it alone.
[[nodiscard]] Result<OtherKind> other_kind_of(const proto::Other& other);

// As they travel; format_of() and file_length_of() are the way back.
proto::Format proto_of(const Format& format);
proto::FileLength proto_of(const FileLength& file_length);
// `node`: who says so, where the error does not name another. Its text travels as UTF-8.
proto::Error proto_of(const Error& error, std::string_view node = {});

}  // namespace pif::wire
