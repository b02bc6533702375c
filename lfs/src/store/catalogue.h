// The catalogue's tables (docs/FORMAT.md "LFS root and catalogue"): components by file id, and the format version.
#pragma once

#include <functional>
#include <optional>

#include "pif/base/ids.h"
#include "pif/kv/store.h"
#include "pif/proto/stored.pb.h"

namespace pif::lfs::catalogue {

[[nodiscard]] Result<std::optional<proto::ComponentState>> get(kv::Transaction& transaction, FileId file);
[[nodiscard]] Result<std::optional<proto::ComponentState>> get(kv::Store& store, FileId file);
[[nodiscard]] Status put(kv::Transaction& transaction, const proto::ComponentState& state);
[[nodiscard]] Status erase(kv::Transaction& transaction, FileId file);

// Entries with id >= from, in order, until visit returns false. An entry that fails its checksum comes as an Error,
// and so does, as file 0's, one whose key is no id.
[[nodiscard]] Status each(kv::Store& store, FileId from,
                          const std::function<bool(FileId file, Result<proto::ComponentState> state)>& visit);

// Components of files that the server did not know.
[[nodiscard]] Status quarantine(kv::Transaction& transaction, const proto::ComponentState& state, std::int64_t since);
[[nodiscard]] Status end_quarantine(kv::Transaction& transaction, FileId file);
[[nodiscard]] Result<std::optional<proto::StoredQuarantine>> quarantined(kv::Store& store, FileId file);
[[nodiscard]] Status each_quarantined(
    kv::Store& store, FileId from, const std::function<bool(FileId file, const proto::StoredQuarantine& entry)>& visit);

// The numbers that numbers.h keeps. kCorrupt: there are none, or they cannot be read.
[[nodiscard]] Result<proto::StoredNumbers> numbers(kv::Store& store);
[[nodiscard]] Status put_numbers(kv::Transaction& transaction, const proto::StoredNumbers& numbers);

// The newest view that this LFS has received (wire/views.h), packed; empty: none yet.
[[nodiscard]] Result<std::string> view(kv::Store& store);
[[nodiscard]] Status put_view(kv::Transaction& transaction, std::string_view packed);

// The last scrub that came to its end (scrub/scrub.h).
struct ScrubRecord {
  std::int64_t ended = 0;        // wall seconds; 0: none did
  std::uint64_t unrepaired = 0;  // damages that it found, and could not repair
};
[[nodiscard]] Result<ScrubRecord> scrub(kv::Store& store);
[[nodiscard]] Status put_scrub(kv::Transaction& transaction, const ScrubRecord& record);

// Files of which this LFS lacks its part (context/lost_files.h).
[[nodiscard]] Result<proto::StoredLacking> lacking(kv::Store& store);
[[nodiscard]] Status put_lacking(kv::Transaction& transaction, const proto::StoredLacking& lacking);

// The format version; 0: the catalogue is new.
[[nodiscard]] Result<std::uint64_t> version(kv::Store& store);
// kVersion, kCorrupt: unless it is this release's, or one's that this release raises.
[[nodiscard]] Status check_version(kv::Store& store);
// Makes it this release's, and says who the root is.
[[nodiscard]] Status begin(kv::Store& store, const std::string& uuid);
// Makes it this release's.
[[nodiscard]] Status raise(kv::Store& store);

}  // namespace pif::lfs::catalogue
