// The catalogue's tables (docs/FORMAT.md "LFS root and catalogue"): components by file id, and the format version.
#pragma once

#include <functional>
#include <optional>

#include "pif/base/ids.h"
#include "pif/kv/store.h"
#include "pif/proto/messages.pb.h"

namespace pif::lfs::catalogue {

[[nodiscard]] Result<std::optional<proto::ComponentState>> get(kv::Transaction& transaction, FileId file);
[[nodiscard]] Result<std::optional<proto::ComponentState>> get(kv::Store& store, FileId file);
[[nodiscard]] Status put(kv::Transaction& transaction, const proto::ComponentState& state);
[[nodiscard]] Status erase(kv::Transaction& transaction, FileId file);

// Entries with id >= from, in order, until visit returns false. An entry that fails its checksum comes as an Error,
// and so does, as file 0's, one whose key is no id.
[[nodiscard]] Status each(kv::Store& store, FileId from,
                          const std::function<bool(FileId file, Result<proto::ComponentState> state)>& visit);

// Writes the format version into a new catalogue; kVersion if it is a newer one's.
[[nodiscard]] Status check_version(kv::Store& store);

}  // namespace pif::lfs::catalogue
